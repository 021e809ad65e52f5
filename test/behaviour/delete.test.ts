import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, type HandlerContext } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("ended jobs", (bed) => {
  test("one, several, or all that match are deleted; what has not ended is refused", async () => {
    const job = defineJob<string>({ name: "job", run: ({ input }) => input });
    await using app = await bed.app({ jobs: [job] });
    const receipts = await app.enqueueMany(
      job,
      ["a", "b", "c", "d"].map((id) => ({ input: id, id })),
    );
    await app.runUntilIdle();
    const later = await app.enqueue(job, "later", { delay: "1h" });
    assert.deepEqual(await app.delete(receipts[0] ?? ""), { deleted: 1 });
    assert.deepEqual(await app.delete([later, "b", "nobody"]), { deleted: 1, refused: 1, unknown: 1 });
    assert.deepEqual(await app.delete({ names: ["job"] }), { deleted: 2 });
    assert.deepEqual([await app.count(), (await app.get(later))?.state], [1, "waiting"]);
    await assert.rejects(app.delete({}), { code: "invalid-option" });
    assert.equal((await app.enqueue(job, "a", { id: "a" })).outcome, "added");
  });

  test("a job that dies is one warning line; its tries are none", async () => {
    const lines: string[] = [];
    const log = { ...silentLogger, warn: (_facts: object, line: string) => void lines.push(line) };
    const job = defineJob({
      name: "job",
      retry: { attempts: 2, backoff: { delay: "1s", jitter: 0 } },
      run: (_: HandlerContext<void>) => {
        throw new RangeError("first line\nsecond line");
      },
    });
    await using app = await bed.app({ jobs: [job], log });
    await app.enqueue(job, undefined, { id: "j" });
    await app.advance("1m");
    assert.deepEqual(
      lines.filter((line) => line.includes('"j"')),
      ['job "j" (job) is dead after attempt 2: attempts used up (2), RangeError: first line'],
    );
  });
});
