import assert from "node:assert/strict";
import { test } from "node:test";
import { LookAhead } from "./look-ahead.ts";

function after(concurrency: number, handlerMs: number, characters = 10): number {
  const lookAhead = new LookAhead(30, concurrency);
  for (let n = 0; n < 1_000; n += 1) lookAhead.ran(handlerMs, characters);
  return lookAhead.wanted;
}

test("nothing is claimed ahead before a handler was seen, nor where that is switched off", () => {
  assert.equal(new LookAhead(30, 100).wanted, 0);
  const off = new LookAhead(0, 100);
  off.ran(1, 10);
  assert.equal(off.wanted, 0);
});

test("as many are claimed ahead as will start within the span", () => {
  assert.equal(after(1, 1), 30);
  assert.equal(after(10, 3), 100);
  assert.equal(after(10, 1_000), 0);
  assert.equal(after(100, 1_000), 3);
});

test("however short handlers are, there is a limit to it", () => {
  assert.equal(after(100, 0), 1_000);
  assert.equal(after(100, 0, 1024 * 1024), 4);
});

test("a slow handler after many fast ones ends it, and fast ones bring it back", () => {
  const lookAhead = new LookAhead(30, 1);
  for (let n = 0; n < 100; n += 1) lookAhead.ran(0.1, 10);
  assert(lookAhead.wanted > 100);
  lookAhead.stalled();
  assert.equal(lookAhead.wanted, 0);
  for (let n = 0; n < 200; n += 1) lookAhead.ran(0.1, 10);
  assert(lookAhead.wanted > 100);
});
