/** A handler's own thread: it imports the handler's module and calls its default export for one job at a time. */
import { parentPort } from "node:worker_threads";
import { EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, Snooze, type StopCause, StopReason } from "../handler.ts";
import { noTransaction, type ThreadAnswer, type ThreadNews, type ThreadOrder } from "./threads.ts";

let controller = new AbortController();

async function run(
  order: Extract<ThreadOrder, { kind: "run" }>,
  tell: (news: ThreadNews) => void,
): Promise<ThreadNews> {
  controller = new AbortController();
  const context: HandlerContext<unknown> = {
    input: order.input,
    job: order.job,
    signal: controller.signal,
    tx: noTransaction,
    log: (line) => tell({ kind: "log", line: String(line) }),
    progress: (value) => tell({ kind: "progress", value: copy(value) }),
  };
  try {
    const module: { default?: unknown } = await import(order.module);
    if (typeof module.default !== "function") {
      throw new EscapementError("invalid-option", `${order.module} has no default export that is a function`);
    }
    const value: unknown = await module.default(context);
    return value instanceof Snooze
      ? { kind: "snoozed", delayMs: value.delayMs }
      : { kind: "returned", value: copy(value) };
  } catch (error) {
    return { kind: "threw", error: recordError(error), unrecoverable: error instanceof UnrecoverableError };
  }
}

/**
 * Results and progress are kept as JSON; going through it here also lets values cross that a structured clone would refuse. What is no JSON
 * is left out: the work is done all the same.
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
    const tell = (news: ThreadNews): void =>
      port.postMessage({ ...news, run: order.run } satisfies ThreadAnswer);
    tell(await run(order, tell));
  });
}
