import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { memory } from "../src/stores/memory/index.ts";
import { sqlite } from "../src/stores/sqlite/index.ts";
import { newFolder } from "./behaviour/stores.ts";
import { isFull } from "./full.ts";

const total = isFull ? 100_000 : 20_000;

describe("many jobs", () => {
  const stores = { memory: () => memory(), sqlite: () => sqlite(join(newFolder(), "jobs.db")) };
  for (const [name, store] of Object.entries(stores)) {
    test(`without faults each of ${total} jobs runs exactly once (${name}) [C1]`, async () => {
      const runs = new Uint8Array(total);
      let done = 0;
      const job = defineJob<number>({
        name: "count",
        run: ({ input }) => {
          runs[input] = (runs[input] ?? 0) + 1;
        },
      });
      await using app = createEscapement({
        store: store(),
        jobs: [job],
        concurrency: 100,
        log: silentLogger,
      });
      await app.enqueueMany(
        job,
        Array.from({ length: total }, (_, n) => ({ input: n })),
      );
      const finished = new Promise<void>((resolve) => {
        app.on("succeeded", () => {
          done += 1;
          if (done === total) resolve();
        });
      });
      await app.start();
      await finished;
      assert.ok(runs.every((times) => times === 1));
      assert.deepEqual(await app.countBy(["state"]), [{ state: "succeeded", count: total }]);
    });
  }
});
