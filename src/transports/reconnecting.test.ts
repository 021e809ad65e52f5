import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../clock.ts";
import { Reconnecting } from "./reconnecting.ts";

function newReconnecting() {
  let now = 0;
  const reconnecting = new Reconnecting({ ...systemClock, monotonic: () => now });
  const pass = (ms: number): void => {
    now += ms;
  };
  return { reconnecting, pass };
}

test("a connection that breaks at its first message is made again ever more slowly, with one warning", () => {
  const { reconnecting, pass } = newReconnecting();
  const waits: number[] = [];
  const firsts: boolean[] = [];
  for (let round = 0; round < 8; round++) {
    reconnecting.opened();
    pass(10);
    const { isFirst, delayMs } = reconnecting.failed();
    waits.push(delayMs);
    firsts.push(isFirst);
  }
  assert.deepEqual(firsts, [true, ...new Array(7).fill(false)]);
  assert((waits.at(-1) ?? 0) >= 500 && (waits[0] ?? 0) <= 100, String(waits));
});

test("a delivery, or a connection that has held for a minute, starts the count over", () => {
  const { reconnecting, pass } = newReconnecting();
  reconnecting.failed();
  assert.equal(reconnecting.failed().isFirst, false);
  reconnecting.opened();
  reconnecting.delivered();
  assert.equal(reconnecting.failed().isFirst, true);
  reconnecting.opened();
  pass(60_000);
  assert.equal(reconnecting.failed().isFirst, true);
});
