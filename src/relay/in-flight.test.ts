import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../definition.ts";
import { recordError } from "../errors.ts";
import { silentLogger } from "../log.ts";
import { resolveSettings } from "../settings.ts";
import type { ClaimedJob } from "../store/claims.ts";
import type { DueJob } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CircuitBreaker, type Destination, Destinations } from "./destinations.ts";
import { InFlight, type NamedJob, type Room, roomFor } from "./in-flight.ts";
import { StoreTime } from "./pacing.ts";

const destination = { kind: "test", breaker: new CircuitBreaker() } as unknown as Destination;

function job(id: string, delivery: ClaimedJob["delivery"] = "at-least-once"): ClaimedJob & DueJob {
  return { id, token: 1, delivery } as ClaimedJob & DueJob;
}

function named(count: number, delivery?: ClaimedJob["delivery"]): NamedJob[] {
  return Array.from({ length: count }, (_, n) => ({
    job: job(`${n}`, delivery),
    destination,
    dispatchTimeoutMs: 1_000,
    age: "fresh",
    decidedAtMs: null,
    hasFailedRollback: false,
  }));
}

function room(undecided: readonly NamedJob[]): Room {
  return roomFor(undecided, { limit: 10, portion: 5, destinations: 1, hasBacklog: false });
}

/** How many jobs there is room for. */
function fill(room: Room, delivery: ClaimedJob["delivery"] = "at-least-once"): number {
  let taken = 0;
  while (!room.isFull("fresh") && room.admits(job("next", delivery), destination)) {
    room.take(job("next", delivery), destination, "fresh");
    taken += 1;
  }
  return taken;
}

test("a checkpoint names at most half of the limit, and never more than the limit is in flight (B6)", () => {
  assert.deepEqual(
    [0, 6, 7, 10].map((undecided) => fill(room(named(undecided)))),
    [5, 4, 3, 0],
  );
});

test("at-most-once goes alone: another is named only with the write that settles the one before", () => {
  assert.equal(fill(room([]), "at-most-once"), 1);
  assert.equal(fill(room(named(1, "at-most-once")), "at-most-once"), 0);
});

/** Ten jobs of a limit of ten, published to a broker that takes the first four and refuses the others. */
async function scene() {
  const clock = new VirtualClock();
  const at = new Date(clock.now());
  const time = new StoreTime();
  time.update(at, clock.monotonic());
  const published: string[] = [];
  const pay = defineJob<null>({
    name: "pay",
    route: {
      destination: "there",
      dispatchTimeoutMs: 1_000,
      transport: {
        kind: "test",
        address: "",
        open: async () => ({
          publish: async (messages) =>
            messages.map(({ key }) => {
              published.push(key);
              return Number(key) < 4
                ? { kind: "acknowledged" }
                : { kind: "refused", error: new Error("full"), permanent: false };
            }),
          close: async () => {},
        }),
      },
    },
  });
  const facts = {
    name: "pay",
    queue: "default",
    tags: [],
    schedule: null,
    redrives: 0,
    attempt: 1,
    input: "null",
  };
  const jobs = Array.from(
    { length: 10 },
    (_, n) => ({ ...job(`${n}`), ...facts, runAt: at, fireAt: at }) as unknown as ClaimedJob,
  );
  const stored = jobs.map(({ id }) => ({ state: "active", claimer: "me", token: id === "9" ? 2 : 1 }));
  const inFlight = new InFlight({
    store: {
      get: async ({ ids }: { ids: string[] }) => ids.map((id) => stored[Number(id)]),
    } as unknown as Store,
    owner: "me",
    settings: resolveSettings({}, {}, () => null),
    clock,
    definitions: new Map([["pay", pay]]),
    destinations: await Destinations.open([pay], { clock, log: silentLogger }),
    limit: 10,
    time,
    emit() {},
    random: () => 0.5,
    isPublishable: () => true,
    timeLeftMs: () => 30_000,
    onCircuit() {},
    onSettled() {},
  });
  inFlight.add(jobs);
  await clock.advance(0);
  return { clock, inFlight, published };
}

test("what a checkpoint settles makes room for what it names, since it is one write", async () => {
  const { inFlight } = await scene();
  assert.deepEqual([inFlight.size, inFlight.outbox.waiting, inFlight.left], [10, 10, 5]);
  const sending = inFlight.outbox.take();
  inFlight.outbox.written(
    sending,
    sending.entries.map(() => ({ outcome: "written", state: "waiting" })),
  );
  assert.deepEqual([inFlight.size, inFlight.outbox.isEmpty], [0, true]);
});

test("a rollback that could not be written in time is withdrawn, and its job published again if it is still ours", async () => {
  const { clock, inFlight, published } = await scene();
  published.length = 0;
  inFlight.putBack(inFlight.outbox.take(), recordError(new Error("no store")), 50);
  await inFlight.republishOverdue();
  assert.deepEqual(published, [], "the dispatch timeout has not passed");
  await clock.advance(1_000);
  const republishing = inFlight.republishOverdue();
  await clock.advance(0);
  await republishing;
  assert.deepEqual(published, ["4", "5", "6", "7", "8"]);
  await clock.advance(0);
  assert.deepEqual([inFlight.has("9"), inFlight.size, inFlight.outbox.waiting], [false, 9, 9]);
});
