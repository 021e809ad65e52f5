import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../definition.ts";
import type { StopReason } from "../handler.ts";
import type { ClaimedJob } from "../store/claims.ts";
import { Held } from "./held.ts";

const hold = (): Held =>
  new Held({ runAt: new Date(0) } as ClaimedJob, defineJob({ name: "job", run() {} }), 0, 1_000, 0);

test("a signal that is first looked at after the stop has fired", () => {
  const held = hold();
  assert(held.stop("timeout", "too long"));
  assert(held.signal.aborted);
  assert.equal((held.signal.reason as StopReason).cause, "timeout");
  assert(held.endSignal.aborted);
});

test("a cancel fires the handler's signal and leaves its thread alone", () => {
  const held = hold();
  const { signal } = held;
  assert(held.stop("cancelled", "not wanted"));
  assert(signal.aborted);
  assert.equal(held.signal, signal);
  assert(!held.endSignal.aborted);
});
