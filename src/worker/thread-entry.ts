/** A handler's own thread: it imports the handler's module and calls its default export for one job at a time. */
import { parentPort } from "node:worker_threads";
import { EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, Snooze, type StopCause, StopReason } from "../handler.ts";
import { whyNoJson } from "./outcome.ts";
import { ThreadCalls } from "./thread-calls.ts";
import { noTransaction, type ThreadAnswer, type ThreadNews, type ThreadOrder } from "./threads.ts";

let controller = new AbortController();
let calls = new ThreadCalls(() => {});

async function run(
  order: Extract<ThreadOrder, { kind: "run" }>,
  tell: (news: ThreadNews) => void,
): Promise<ThreadNews> {
  controller = new AbortController();
  calls = new ThreadCalls(tell);
  const context: HandlerContext<unknown> = {
    input: order.input,
    job: order.job,
    signal: controller.signal,
    tx: noTransaction,
    ...calls.jobs,
    log: (line) => tell({ kind: "log", line: String(line) }),
    progress: (value) => tell({ kind: "progress", value: copy(value) }),
  };
  try {
    const module: { default?: unknown } = await import(order.module);
    if (typeof module.default !== "function") {
      throw new EscapementError("invalid-option", `${order.module} has no default export that is a function`);
    }
    const value: unknown = await module.default(context);
    return value instanceof Snooze ? { kind: "snoozed", delayMs: value.delayMs } : returned(value);
  } catch (error) {
    return { kind: "threw", error: recordError(error), unrecoverable: error instanceof UnrecoverableError };
  }
}

function returned(value: unknown): ThreadNews {
  try {
    const text = JSON.stringify(value);
    if (text === undefined && value !== undefined) {
      return { kind: "returned", value: undefined, why: `a ${typeof value} cannot be written as JSON` };
    }
    return { kind: "returned", value: text === undefined ? undefined : JSON.parse(text) };
  } catch (error) {
    return { kind: "returned", value: undefined, why: whyNoJson(error) };
  }
}

/**
 * Results and progress are kept as JSON; going through it here also lets values cross that a structured clone would
 * refuse. What is not JSON is left out of progress: the work continues.
 */
function copy(value: unknown): unknown {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

if (parentPort !== null) {
  const port = parentPort;
  port.on("message", async (order: ThreadOrder) => {
    if (order.kind === "stop") {
      controller.abort(new StopReason(order.cause as StopCause, order.message));
      return;
    }
    if (order.kind === "answer") return calls.answer(order.call, order);
    const tell = (news: ThreadNews): void =>
      port.postMessage({ ...news, run: order.run } satisfies ThreadAnswer);
    tell(await run(order, tell));
  });
}
