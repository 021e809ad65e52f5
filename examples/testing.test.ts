// A test of a job, on a clock that the test controls.
// #region main
import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../src/index.ts";
import { createTestEscapement } from "../src/testing/index.ts";

test("the reminder goes out an hour later, even when the mail server is down at first", async () => {
  const sent: string[] = [];
  const remind = defineJob<{ to: string }>({
    name: "remind",
    run: ({ input, job }) => {
      if (job.attempt === 1) throw new Error("no mail server");
      sent.push(input.to);
    },
  });
  await using app = await createTestEscapement({ jobs: [remind] });

  await app.enqueue(remind, { to: "ada" }, { delay: "1h" });
  await app.advance("59m");
  assert.deepEqual(sent, []);
  await app.advance("2m"); // the first attempt, and the retry half a minute later
  assert.deepEqual(sent, ["ada"]);
});
// #endregion
