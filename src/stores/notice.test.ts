import assert from "node:assert/strict";
import { test } from "node:test";
import { anyNotice, isNotice } from "./notice.ts";

test("a notice from outside is one only when every part of it is", () => {
  const good = [...anyNotice, { kind: "jobs", queues: ["a"] }, { kind: "cancel", ids: ["a"] }];
  assert.deepEqual(good.filter(isNotice), good);
  const bad = [
    null,
    1,
    "jobs",
    [],
    {},
    { kind: "jobs" },
    { kind: "jobs", queues: 5 },
    { kind: "jobs", queues: [null] },
    { kind: "ended", queues: ["a"] },
    { kind: "cancel", ids: null },
    { kind: "cancel", ids: { length: 1 } },
    { kind: "__proto__" },
    { kind: ["jobs"], queues: null },
  ];
  assert.deepEqual(bad.filter(isNotice), []);
});
