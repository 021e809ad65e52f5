import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "./test/api-session.ts";

test("what is wrong with a request is said in our own form", async () => {
  const { ask, app } = openSession();
  const cases: [string, unknown, RegExp][] = [
    ["GET /jobs?state=asleep", undefined, /expected state\[0\] to be one of blocked, waiting, /],
    ["GET /jobs?limit=0", undefined, /limit/],
    ["GET /jobs?colour=red", undefined, /expected it to have no "colour"/],
    ["POST /jobs", { input: {} }, /expected name to be given/],
    ["POST /jobs", { name: 7, input: {} }, /expected name to be of type string/],
    ["POST /jobs", { name: "x".repeat(129), input: {} }, /expected name to have at most 128 characters/],
    ["PATCH /queues/q", { rate: { limit: 1, per: "banana" } }, /rate\.per: expected a duration such as /],
    ["POST /jobs", { name: "a", input: {}, runAt: "soon" }, /runAt: expected a time such as /],
  ];
  for (const [route, body, said] of cases) {
    const { status, answer } = await ask(route, body === undefined ? {} : { body });
    assert.equal(status, 400, route);
    assert.match(String(answer["detail"]), said);
    assert.doesNotMatch(String(answer["detail"]), /Invalid|Unrecognized|Too (big|small)/);
  }
  await app.stop();
});
