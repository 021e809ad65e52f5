import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimedJob, DueJob } from "../store.ts";
import { Flights, type Room } from "./flights.ts";
import { Gate } from "./gate.ts";
import type { Outlet } from "./outlet.ts";

const outlet = { kind: "test", gate: new Gate() } as unknown as Outlet;

function job(id: string, delivery: ClaimedJob["delivery"] = "at-least-once"): ClaimedJob & DueJob {
  return { id, token: 1, delivery } as ClaimedJob & DueJob;
}

/** How many jobs there is room for. */
function fill(room: Room, delivery: ClaimedJob["delivery"] = "at-least-once"): number {
  let taken = 0;
  while (!room.isFull("fresh") && room.admits(job("next", delivery), outlet)) {
    room.take(job("next", delivery), outlet, "fresh");
    taken += 1;
  }
  return taken;
}

test("B6: a checkpoint names half of the width at the most, and never more than the width is in flight", () => {
  const flights = new Flights(10, 1);
  assert.equal(fill(flights.room(false)), 5);
  for (let n = 0; n < 7; n += 1) flights.add(job(`a${n}`), outlet, "fresh");
  assert.equal(fill(flights.room(false)), 3);
  for (let n = 0; n < 3; n += 1) flights.add(job(`b${n}`), outlet, "fresh");
  assert.equal(fill(flights.room(false)), 0);
});

test("what a checkpoint settles makes room for what it names, and takes it again when it is published after all", () => {
  const flights = new Flights(10, 1);
  for (let n = 0; n < 10; n += 1) flights.add(job(`a${n}`), outlet, "fresh");
  for (let n = 0; n < 4; n += 1) flights.decide(job(`a${n}`), true);
  assert.deepEqual([flights.left, fill(flights.room(false)), flights.size], [4, 4, 10]);
  flights.decide(job("a0"), false);
  assert.equal(fill(flights.room(false)), 3);
});

test("at-most-once goes alone: another is named only with the write that settles the one before", () => {
  const flights = new Flights(10, 1);
  assert.equal(fill(flights.room(false), "at-most-once"), 1);
  flights.add(job("a", "at-most-once"), outlet, "fresh");
  assert.deepEqual([flights.hasOnce, fill(flights.room(false), "at-most-once")], [true, 0]);
  flights.decide(job("a", "at-most-once"), true);
  assert.equal(fill(flights.room(false), "at-most-once"), 1);
});
