/** A handler's own thread: it imports the handler's module and calls its default export for one job at a time. */
import { parentPort } from "node:worker_threads";
import { EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, Snooze, type StopCause, StopReason } from "../handler.ts";
import { jsonLoss } from "../json-loss.ts";
import { logLine } from "./log-line.ts";
import { whyLost, whyNoJson, whyNoText } from "./outcome.ts";
import { ThreadCalls } from "./thread-calls.ts";
import { type Copy, noTransaction, type ThreadAnswer, type ThreadNews, type ThreadOrder } from "./threads.ts";

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
    log: (line) => tell({ kind: "log", line: logLine(line) }),
    progress: (value) => tell({ kind: "progress", ...copy(value) }),
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
  return { kind: "returned", ...copy(value) };
}

/**
 * Results and progress are kept as JSON; going through it here also lets values cross that a structured clone would
 * refuse. Of what JSON does not carry only the reason crosses.
 */
function copy(value: unknown): Copy {
  try {
    const text = JSON.stringify(value);
    if (text === undefined) {
      return value === undefined ? { value } : { value: undefined, why: whyNoText(value) };
    }
    const loss = jsonLoss(value, text);
    return loss === null ? { value: JSON.parse(text) } : { value: undefined, why: whyLost(loss) };
  } catch (error) {
    return { value: undefined, why: whyNoJson(error) };
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
