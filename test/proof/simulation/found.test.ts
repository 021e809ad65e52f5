import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../../src/clock.ts";
import { EscapementError } from "../../../src/errors.ts";
import { defineJob } from "../../../src/index.ts";
import { silentLogger } from "../../../src/log.ts";
import { planSchedule } from "../../../src/planner/plan.ts";
import type { StoreFactory } from "../../../src/store/opening.ts";
import type { Store } from "../../../src/store/store.ts";
import { memory } from "../../../src/stores/memory/index.ts";
import { TestEscapement } from "../../../src/testing/kit.ts";
import { override } from "../../../src/testing/override.ts";
import { VirtualClock } from "../../../src/testing/virtual-clock.ts";

// What the simulation found, each by itself, so that it stays found whatever becomes of the seeds.

function storeWith(change: (store: Store) => Partial<Store>): StoreFactory {
  const factory = memory();
  return {
    open: async (context) => {
      const store = await factory.open(context);
      return override(store, change(store));
    },
  };
}

function unavailable(): never {
  throw new EscapementError("store-unavailable", "the connection broke");
}

test("the lease of a claim whose reply was lost counts from the first time it was asked for", async () => {
  const clock = new VirtualClock();
  let claimedAt: number | null = null;
  const store = storeWith((inner) => ({
    extend: async () => unavailable(),
    step: async (params) => {
      if (claimedAt !== null && clock.monotonic() < 8_000) unavailable();
      const result = await inner.step(params);
      if (claimedAt !== null || result.claimed.jobs.length === 0) return result;
      claimedAt = clock.monotonic();
      return unavailable();
    },
  }));
  let startedAt = 0;
  let stoppedAt = Number.POSITIVE_INFINITY;
  const job = defineJob<null>({
    name: "late",
    run: ({ signal }) => {
      startedAt = clock.monotonic();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          stoppedAt = Math.min(stoppedAt, clock.monotonic());
          reject(signal.reason);
        });
      });
    },
  });
  const app = new TestEscapement({ store, jobs: [job], lease: "30s", log: silentLogger }, clock);
  await app.enqueue(job, null);
  await app.start({ roles: ["worker"] });
  await clock.advance(60_000);
  assert.ok(startedAt >= 8_000, "the repeated claim brought the job");
  assert.ok(
    stoppedAt < 30_000,
    `the store may give the job away at 30 s, its handler was told at ${stoppedAt}`,
  );
});

test("a handler that goes on after its tx is not told that its lease was lost", async () => {
  const clock = new VirtualClock();
  const job = defineJob<null>({
    name: "tidy",
    delivery: "effectively-once",
    run: async ({ tx, signal }) => {
      await tx(() => "done");
      await sleep(clock, 60_000, signal);
      assert.equal(signal.aborted, false);
    },
  });
  const app = new TestEscapement({ store: memory(), jobs: [job], log: silentLogger }, clock);
  const told: string[] = [];
  app.on("leaseLost", () => told.push("leaseLost"));
  app.on("succeeded", () => told.push("succeeded"));
  await app.enqueue(job, null);
  await app.start();
  await clock.advance(120_000);
  assert.deepEqual(told, ["succeeded"]);
});

test("a claim that comes back slower than a lease, when the process is stopping, is given back [K8]", async () => {
  const clock = new VirtualClock();
  const store = storeWith((inner) => ({
    step: async (params) => {
      await sleep(clock, 45_000);
      return inner.step(params);
    },
  }));
  const job = defineJob<null>({ name: "once", delivery: "at-most-once", run: () => assert.fail("too late") });
  const app = new TestEscapement({ store, jobs: [job], lease: "30s", log: silentLogger }, clock);
  const watcher = new TestEscapement({ store, jobs: [], log: silentLogger }, clock);
  const { id } = await app.enqueue(job, null);
  await app.start({ roles: ["worker"] });
  await clock.settle();
  const stopped = app.stop({ timeout: 0 });
  await clock.advance(50_000);
  await stopped;
  assert.equal((await watcher.get(id))?.state, "waiting");
});

test("a start that failed half-way leaves nothing running", async () => {
  let fails = true;
  const store = storeWith((inner) => ({
    subscribe: async (listener) => (fails ? unavailable() : inner.subscribe(listener)),
  }));
  const clock = new VirtualClock();
  const job = defineJob<null>({ name: "any", run: () => null });
  const app = new TestEscapement({ store, jobs: [job], log: silentLogger }, clock);
  await assert.rejects(app.start(), { code: "store-unavailable" });
  fails = false;
  await app.start();
  await clock.advance(120_000);
  assert.equal((await app.nodes()).length, 1);
});

test("a node on a clock of its own keeps no process alive, so that a simulated crash leaves nothing behind", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const app = new TestEscapement({ store: memory(), log: silentLogger }, new VirtualClock());
  await app.start();
  assert.equal(timers(), before);
});

test("what a pause skips is on record, also where a planner fired while the pause was on its way [K2]", async () => {
  const clock = new VirtualClock();
  const store = storeWith((inner) => ({
    putSchedule: async (params) => {
      const [record] = params.paused ? await inner.schedules({ keys: [params.key] }) : [];
      if (record !== undefined) {
        const { fire } = planSchedule(record, { now: clock.now(), previous: null, disallow: [] });
        await inner.fire({ node: "another", fires: [fire] });
      }
      return inner.putSchedule(params);
    },
  }));
  const job = defineJob<null>({ name: "any", run: () => null });
  const app = new TestEscapement({ store, jobs: [job], log: silentLogger }, clock);
  await app.schedule("tick", { every: 10_000 }, job, null);
  await clock.advance(10_000);
  await app.pauseSchedule("tick");
  await clock.advance(30_000);
  await app.resumeSchedule("tick");
  const rows = await app.occurrences("tick");
  assert.deepEqual(
    rows.map(({ fate, count }) => [fate, count]),
    [
      ["waiting", 1],
      ["skipped", 3],
    ],
  );
});
