import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, Operations } from "../../src/index.ts";
import { onEveryStore } from "./stores.ts";

/** No SQL server takes the first, and none of them the second as it is. */
const odd = "a\u0000b\ud800c";

onEveryStore("NUL bytes and lone surrogates", (bed) => {
  test("in what handlers say they hold up nothing: the job ends, its neighbours run, and the story can be read", async () => {
    const ran: string[] = [];
    const says = defineJob<unknown>({
      name: "says",
      retry: { attempts: 1 },
      run: ({ input, log, progress }) => {
        log(odd);
        progress({ [odd]: odd });
        ran.push(String(input));
        if (input === "fails") throw Object.assign(new Error(odd), { name: odd, stack: odd });
        return { [odd]: odd };
      },
    });
    await using app = await bed.app({ jobs: [says] });
    await app.enqueue(says, "fails", { id: "fails" });
    await app.enqueue(says, odd, { id: "answers" });
    await app.enqueue(says, "healthy", { id: "healthy" });
    await app.advance("5s");
    assert.equal(ran.length, 3);
    const states = await Promise.all(["fails", "answers", "healthy"].map((id) => app.get(id)));
    assert.deepEqual(
      states.map((job) => job?.state),
      ["dead", "succeeded", "succeeded"],
    );
    for (const id of ["fails", "answers"]) {
      assert.ok((await app.trail(id)).length > 0);
      await app.explain(id);
    }
  });

  test("in what people say they hold up nothing either", async () => {
    const job = defineJob<unknown>({ name: "job", run: () => 1 });
    await using app = await bed.app({ jobs: [job] });
    await app.enqueue(job, 1, { id: "later", delay: "1h" });
    await app.cancel("later", { reason: odd });
    assert.equal((await app.get("later"))?.state, "cancelled");
    await new Operations(app).pauseQueue("q", { actor: "somebody", reason: odd });
    assert.equal((await new Operations(app).audit({}, {})).entries.length, 1);
  });

  test("in what is looked for they are refused, and so are more tags than a job can have", async () => {
    await using app = await bed.app({ jobs: [] });
    const wrong = { name: "EscapementError", code: "invalid-option" };
    for (const key of ["ids", "names", "queues", "tags"]) {
      await assert.rejects(app.list({ [key]: [odd] }), wrong, key);
      await assert.rejects(app.count({ [key]: ["\u0000"] }), wrong, key);
    }
    await assert.rejects(app.list({ schedule: odd }), wrong);
    await assert.rejects(app.list({ tags: new Array(5_000).fill("t") }), wrong);
    const people = new Operations(app);
    await assert.rejects(people.audit({ actors: [odd] }, {}), wrong);
    await assert.rejects(people.jobs({ text: odd }), wrong);
  });
});
