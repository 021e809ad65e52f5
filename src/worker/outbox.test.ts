import assert from "node:assert/strict";
import { test } from "node:test";
import type { Held } from "./held.ts";
import { Outbox, type Reports } from "./outbox.ts";
import { released } from "./outcome.ts";

const noReports: Reports = { isIdle: true, isWritten: () => true, flush: async () => {} };
const held = { job: { id: "a", token: 1 } } as Held;

test("an outcome that was answered is not sent again, whatever failed after the answer", () => {
  const outbox = new Outbox(() => assert.fail("whoever is told of it fails"), noReports);
  outbox.add(held, released);
  const sending = outbox.take();
  assert.throws(() => outbox.written(sending, [{ outcome: "written", state: "waiting" }]));
  outbox.putBack(sending);
  assert.equal(outbox.narrow(sending), null);
  assert.equal(outbox.isEmpty, true);
});

test("an outcome that was not answered is sent again, before what has come since", () => {
  const outbox = new Outbox(() => {}, noReports);
  outbox.add(held, released);
  const sending = outbox.take();
  outbox.add({ job: { id: "b", token: 1 } } as Held, released);
  outbox.putBack(sending);
  assert.equal(outbox.isEmpty, false);
  assert.deepEqual(
    outbox.take().finishes.map(({ id }) => id),
    ["a", "b"],
  );
});

test("a trip without outcomes leaves nothing behind", () => {
  const outbox = new Outbox(() => {}, noReports);
  assert.deepEqual(outbox.take().finishes, []);
  assert.equal(outbox.isEmpty, true);
});
