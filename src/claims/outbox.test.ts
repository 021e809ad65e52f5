import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "./outbox.ts";

const released = { kind: "release" } as const;
const held = { job: { id: "a", token: 1 } };

function newOutbox(onWritten: () => void = () => {}) {
  return new Outbox<typeof held>({ onWritten, reports: null });
}

test("an outcome that was answered is not sent again, whatever failed after the answer", () => {
  const outbox = newOutbox(() => assert.fail("the listener fails"));
  outbox.add(held, released);
  const sending = outbox.take();
  assert.throws(() => outbox.written(sending, [{ outcome: "written", state: "waiting" }]));
  outbox.putBack(sending);
  assert.equal(outbox.narrow(sending), null);
  assert.equal(outbox.isEmpty, true);
});

test("an outcome that was not answered is sent again, before what has come since", () => {
  const outbox = newOutbox();
  outbox.add(held, released);
  const sending = outbox.take();
  outbox.add({ job: { id: "b", token: 1 } }, released);
  outbox.putBack(sending);
  assert.equal(outbox.isEmpty, false);
  assert.deepEqual(
    outbox.take().finishes.map(({ id }) => id),
    ["a", "b"],
  );
});

test("a trip without outcomes leaves nothing behind", () => {
  const outbox = newOutbox();
  assert.deepEqual(outbox.take().finishes, []);
  assert.equal(outbox.isEmpty, true);
});

test("an outcome that is withdrawn is not sent, and the others keep their order", () => {
  const outbox = newOutbox();
  for (const id of ["a", "b", "c"]) outbox.add({ job: { id, token: 1 } }, released);
  assert.deepEqual(
    outbox.withdraw(({ job }) => job.id === "b").map(({ job }) => job.id),
    ["b"],
  );
  assert.deepEqual(
    outbox.take().finishes.map(({ id }) => id),
    ["a", "c"],
  );
});
