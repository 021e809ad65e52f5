import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("the reason of a cancel", (bed) => {
  test("stands in the job, in the error of result, and in the event, also where the job was active", async () => {
    const obedient = defineJob<null>({
      name: "obedient",
      run: ({ signal }) => {
        const { promise, reject } = Promise.withResolvers<void>();
        signal.addEventListener("abort", () => reject(new Error("told to stop")));
        return promise;
      },
    });
    await using app = await bed.app({ jobs: [obedient] });
    const reasons: (string | null)[] = [];
    app.on("cancelled", ({ reason }) => reasons.push(reason));
    const { id } = await app.enqueue(obedient, null);
    await app.advance("1s");
    assert.equal((await app.get(id))?.state, "active");
    await app.cancel(id, { reason: "the customer left" });
    await app.advance("30s");
    const job = await app.get(id);
    assert.deepEqual([job?.state, job?.reason], ["cancelled", "the customer left"]);
    await assert.rejects(app.result(id), {
      code: "job-failed",
      message: /is cancelled: the customer left/,
    });
    assert.deepEqual(reasons, ["the customer left"]);
  });
});
