/** A handler's own thread: it imports the handler's module and calls its default export for one job at a time. */
import { parentPort } from "node:worker_threads";
import { EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { type HandlerContext, Snooze, type StopCause, StopReason } from "../handler.ts";
import { noTransaction, type ThreadAnswer, type ThreadOrder } from "./threads.ts";

let controller = new AbortController();

async function run(
  order: Extract<ThreadOrder, { kind: "run" }>,
  tell: (answer: ThreadAnswer) => void,
): Promise<ThreadAnswer> {
  controller = new AbortController();
  const context: HandlerContext<unknown> = {
    input: order.input,
    job: order.job,
    signal: controller.signal,
    tx: noTransaction,
    log: (line) => tell({ kind: "log", line: String(line) }),
    progress: (value) => tell({ kind: "progress", value }),
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

/** Results are kept as JSON; going through it here also lets values cross that a structured clone would refuse. */
function copy(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

if (parentPort !== null) {
  const port = parentPort;
  const tell = (answer: ThreadAnswer): void => port.postMessage(answer);
  port.on("message", async (order: ThreadOrder) => {
    if (order.kind === "stop") controller.abort(new StopReason(order.cause as StopCause, order.message));
    else tell(await run(order, tell));
  });
}
