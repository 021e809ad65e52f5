import type { JobDefinition } from "../../src/definition.ts";
import type { HandlerContext } from "../../src/handler.ts";

/** A handler for tests of threads: its input says what it shall do. */
export default async function work(context: HandlerContext<{ how: string } | null>) {
  const { job, log, progress, signal, enqueue, enqueueMany, get } = context;
  const input = context.input ?? { how: "return" };
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
    case "map": {
      const value = { counts: new Map([["a", 1]]) };
      progress(value);
      return value;
    }
    case "enqueue": {
      const receipt = await enqueue("threaded", { how: "return" }, { id: `${job.id}/1` });
      const many = await enqueueMany([
        { job: { name: "threaded" } as JobDefinition<void>, after: [receipt], id: `${job.id}/2` },
      ]);
      const refused = await enqueue("nobody").catch((error: { code?: string }) => error.code);
      return { receipt, many, refused, seen: (await get(receipt))?.name };
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
