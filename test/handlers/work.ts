import type { HandlerContext } from "../../src/handler.ts";

/** A handler for tests of threads: its input says what it shall do. */
export default async function work({ input, job, log, progress, signal }: HandlerContext<{ how: string }>) {
  log(`in a thread, try ${job.attempt}`);
  progress(50);
  switch (input.how) {
    case "return":
      return { how: input.how, id: job.id };
    case "circular": {
      const value: { self?: unknown; big: bigint } = { big: 1n };
      value.self = value;
      progress(value);
      return value;
    }
    case "throw":
      throw new RangeError("from the thread");
    case "exit":
      return process.exit(7);
    case "stray":
      setImmediate(() => {
        throw new Error("nobody catches this");
      });
      return new Promise(() => {});
    case "spin":
      for (;;);
    case "wait":
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    default:
      throw new Error(`unknown: ${input.how}`);
  }
}
