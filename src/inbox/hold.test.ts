import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { InboxStore } from "../store/inbox.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Hold } from "./hold.ts";

const leaseMs = 30_000;

/** A hold whose renewals are answered as the test says. */
function newHold(extend: () => Promise<boolean>) {
  const clock = new VirtualClock();
  let renewals = 0;
  const store: InboxStore = {
    atomic: true,
    migrate: async () => {},
    begin: () => assert.fail(),
    commit: async ({ run }) => ({ outcome: "committed", value: await run(null) }),
    extend: () => {
      renewals += 1;
      return extend();
    },
    finish: async () => true,
    release: async () => true,
    prune: async () => 0,
    close: async () => {},
  };
  const parts = { store, clock, claim: { key: "k", token: 1 }, leaseMs, retentionMs: leaseMs };
  return { clock, hold: new Hold({ ...parts, askedAtMs: clock.monotonic() }), renewals: () => renewals };
}

describe("a hold on a key of an inbox", () => {
  test("it is kept by renewals, and who cannot renew is told before the lease is over", async () => {
    let isUp = true;
    const { clock, hold } = newHold(async () => isUp || Promise.reject(new Error("cut off")));
    await clock.advance(3 * leaseMs);
    assert.equal(hold.lost.aborted, false);
    isUp = false;
    await clock.advance(leaseMs - 1);
    assert.equal(hold.lost.aborted, true);
  });

  test("one that is abandoned is renewed no more", async () => {
    const { clock, hold, renewals } = newHold(async () => true);
    await clock.advance(leaseMs);
    const before = renewals();
    hold.abandon();
    await clock.advance(10 * leaseMs);
    assert.deepEqual([before > 0, renewals()], [true, before]);
  });

  for (const isHeld of [true, false]) {
    test(`a renewal that is answered ${isHeld} after the commit loses nothing`, async () => {
      const answer = Promise.withResolvers<boolean>();
      const { clock, hold } = newHold(() => answer.promise);
      await clock.advance(leaseMs / 2);
      await hold.commit(() => null);
      answer.resolve(isHeld);
      await clock.advance(2 * leaseMs);
      assert.equal(hold.lost.aborted, false);
    });
  }
});
