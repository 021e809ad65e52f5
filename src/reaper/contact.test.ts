import assert from "node:assert/strict";
import { test } from "node:test";
import { afterAnswer, type Contact, graceMs, reapableUntil } from "./contact.ts";

const leaseMs = 30_000;
const waitMs = graceMs(leaseMs);

/** The contact after answers at these times. */
function after(...marks: number[]): Contact | null {
  return marks.reduce<Contact | null>((contact, mark) => afterAnswer(contact, mark, leaseMs), null);
}

test("a reaper that has just come in touch with the store ends no claim", () => {
  assert.equal(reapableUntil(null, waitMs), null);
  assert.equal(reapableUntil(after(1_000), waitMs), null);
  assert.equal(reapableUntil(after(1_000, 8_000, 15_999), waitMs), null);
});

test("after half a lease it ends those that had run out when the store last answered", () => {
  assert.equal(reapableUntil(after(1_000, 8_000, 16_000), waitMs), 16_000);
});

test("after an interruption it waits again, however long it had been in touch", () => {
  const marks = Array.from({ length: 100 }, (_, n) => n * 1_000);
  assert.equal(reapableUntil(after(...marks, 99_000 + waitMs), waitMs), 99_000 + waitMs);
  assert.equal(reapableUntil(after(...marks, 99_001 + waitMs), waitMs), null);
});

test("one that need not wait ends claims once the store has answered", () => {
  assert.equal(reapableUntil(null, 0), null);
  assert.equal(reapableUntil(after(5_000), 0), 5_000);
});

test("when the store's clock was set back it waits again", () => {
  assert.equal(reapableUntil(after(0, 10_000, 20_000, 19_990), waitMs), 19_990);
  assert.equal(reapableUntil(after(0, 10_000, 20_000, 3_000), waitMs), null);
});
