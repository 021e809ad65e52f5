import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../log.ts";
import { acknowledged, refused } from "../message/publish-result.ts";
import type { PublishResult, Transport } from "../message/transport.ts";
import { CircuitBreaker, Destination } from "./destinations.ts";

test("a destination logs when nothing gets through any more, once a minute, and when it does again", () => {
  const logged: string[] = [];
  const log = (fields: object, message: string): void => {
    logged.push(`${message} ${"error" in fields ? fields.error : ""}`.trim());
  };
  const destination = new Destination({
    kind: "test",
    destination: "there",
    transport: {} as Transport,
    log: { ...silentLogger, warn: log, info: log },
  });
  const trouble = "destination unreachable; jobs are waiting down";
  destination.record([acknowledged], 0, 1);
  destination.record([refused("too large", { permanent: true })], 1, 2);
  assert.deepEqual(logged, []);
  for (const atMs of [10, 1_000, 30_000, 59_000]) destination.record([refused("down")], atMs, atMs + 1);
  assert.deepEqual(logged, [trouble]);
  destination.record([refused("down")], 70_000, 70_011);
  assert.deepEqual(logged, [trouble, trouble]);
  destination.record([acknowledged, refused("down")], 80_000, 80_001);
  destination.record([acknowledged], 80_000, 80_002);
  assert.deepEqual(logged, [trouble, trouble, "destination reachable again"]);
});

const down = refused("down");

test("a circuit opens for longer each time nothing gets through, and lets fewer jobs pass afterwards", () => {
  const breaker = new CircuitBreaker();
  assert.deepEqual([breaker.isOpen(0), breaker.limit(100)], [false, 100]);
  assert.equal(breaker.record([down, down], 0, 0), 100);
  assert.deepEqual([breaker.isOpen(99), breaker.isOpen(100), breaker.limit(100)], [true, false, 50]);
  assert.equal(breaker.record([down], 100, 100), 200);
  assert.equal(breaker.limit(100), 25);
  for (let n = 0; n < 40; n += 1) breaker.record([down], 300, 300);
  assert.deepEqual([breaker.limit(100), breaker.isOpen(5_300)], [1, false], "all is bounded");
  assert.equal(breaker.record([down, { kind: "acknowledged" }], 6_000, 6_000), 0);
  assert.equal(breaker.limit(100), 100);
});

test("batches that were under way together open a circuit once", () => {
  const breaker = new CircuitBreaker();
  for (let n = 0; n < 16; n += 1) breaker.record([down], n, 50 + n);
  assert.deepEqual([breaker.isOpen(149), breaker.isOpen(150), breaker.limit(100)], [true, false, 50]);
  assert.equal(breaker.record([{ ...down, retryAfterMs: 500 } as PublishResult], 20, 160), 500);
  assert.equal(breaker.limit(100), 50, "a pause that a receiver asks for is no further failure");
  assert.equal(breaker.record([down], 660, 670), 200);
});

test("a circuit closes as soon as something gets through, however long it was to be open", () => {
  const breaker = new CircuitBreaker();
  for (let n = 0; n < 10; n += 1) breaker.record([down], 0, 0);
  assert.deepEqual([breaker.isOpen(4_999), breaker.limit(100)], [true, 1]);
  assert.equal(breaker.record([{ kind: "acknowledged" }], 0, 10), 0);
  assert.deepEqual([breaker.isOpen(10), breaker.limit(100)], [false, 100]);
  assert.equal(breaker.record([down], 20, 20), 100, "and what is refused now opens it for a moment");
});

test("a circuit stays open as long as the receiver asks, within bounds", () => {
  const breaker = new CircuitBreaker();
  assert.equal(breaker.record([{ ...down, retryAfterMs: 3_000 } as PublishResult], 0, 0), 3_000);
  assert.equal(breaker.record([{ ...down, retryAfterMs: 1e9 } as PublishResult], 0, 0), 5_000);
});

test("a destination reports how often it failed in a row, and why", () => {
  const destination = new Destination({
    kind: "test",
    destination: "https://user:secret@there/?token=1",
    transport: {} as Transport,
    log: silentLogger,
  });
  const shown = { transport: "test", destination: "https://…@there/?…" };
  assert.deepEqual(destination.state, { ...shown, failures: 0, error: null });
  destination.record([down], 0, 10);
  assert.deepEqual(destination.state, { ...shown, failures: 1, error: "down" });
  destination.record([down], 5, 120);
  assert.deepEqual(
    destination.state,
    { ...shown, failures: 1, error: "down" },
    "a batch begun before the failure is no further one",
  );
  destination.record([acknowledged], 110, 130);
  assert.deepEqual(destination.state, { ...shown, failures: 0, error: null });
});
