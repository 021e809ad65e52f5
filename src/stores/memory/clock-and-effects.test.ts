import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../../log.ts";
import { Claimer, leaseMs } from "../../testing/conformance/claimer.ts";
import { hour, minute, newJob, succeed } from "../../testing/conformance/scene.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { memory } from "./index.ts";

async function open() {
  const clock = new VirtualClock();
  const factory = memory();
  const store = await factory.open({ namespace: "n", clock, log: silentLogger });
  return { clock, factory, store, claimer: new Claimer(store, "node-1") };
}

test("a wall clock set forward expires no lease", async () => {
  const { clock, store, claimer } = await open();
  await store.enqueue({ jobs: [newJob("a")] });
  const claimed = await claimer.one();
  clock.jump(24 * hour);
  assert.deepEqual((await store.reap({ limit: 10 })).reaped, []);
  await clock.advance(2 * leaseMs);
  assert.equal((await store.reap({ limit: 10 })).reaped.length, 1);
  assert.equal((await claimer.finish(claimed, succeed)).outcome, "stale");
});

test("a wall clock set back makes nothing due early, brings back what had expired, and stalls no rate", async () => {
  const { clock, store, claimer } = await open();
  const rate = { limit: 1, perMs: minute };
  await store.configureQueue({ queue: "slow", rate });
  await store.enqueue({
    jobs: [
      newJob("due", { delayMs: hour }),
      newJob("expires", { delayMs: minute, expireInMs: minute }),
      newJob("slow", { queue: "slow" }),
      newJob("slower", { queue: "slow" }),
    ],
  });
  await clock.advance(2 * hour);
  assert.deepEqual(await claimer.ids({ limit: 1 }), ["slow"]);
  clock.jump(-2 * hour);
  assert.deepEqual(await claimer.ids(), ["slower"]);
  await clock.advance(1.5 * minute);
  assert.deepEqual(await claimer.ids(), ["expires"]);
  await clock.advance(hour);
  assert.deepEqual(await claimer.ids(), ["due"]);
});

test("what a transaction wrote is there when it committed, and gone when it was rolled back", async () => {
  const { factory, store, claimer } = await open();
  await store.enqueue({ jobs: [newJob("a")] });
  const { id, token } = await claimer.one();
  const claim = {
    claimer: claimer.id,
    id,
    token,
    encode: (value: unknown) => ({ kind: "succeed" as const, result: JSON.stringify(value ?? null) }),
  };
  const set = (tx: unknown, value: number): void =>
    (tx as { set(key: string, value: number): void }).set("k", value);
  const failing = store.transact({
    ...claim,
    run(tx) {
      set(tx, 1);
      throw new Error("no");
    },
  });
  await assert.rejects(failing, { message: "no" });
  assert.deepEqual([...factory.effects("n")], []);
  let kept: unknown;
  await store.transact({
    ...claim,
    run(tx) {
      set(tx, 2);
      kept = tx;
      return null;
    },
  });
  assert.deepEqual([...factory.effects("n")], [["k", 2]]);
  assert.throws(() => set(kept, 3), { code: "transaction-used" });
  await assert.rejects(store.enqueue({ jobs: [newJob("b")], tx: {} }), { code: "transaction-unavailable" });
});

test("a claim that ends while the caller's function is at work rolls its writes back", async () => {
  const { clock, factory, store, claimer } = await open();
  await store.enqueue({ jobs: [newJob("a")] });
  const { id, token } = await claimer.one();
  const answer = await store.transact({
    claimer: claimer.id,
    id,
    token,
    encode: (value: unknown) => ({ kind: "succeed" as const, result: JSON.stringify(value ?? null) }),
    async run(tx) {
      (tx as { set(key: string, value: number): void }).set("k", 1);
      await clock.advance(2 * leaseMs);
      await store.reap({ limit: 1 });
      return 1;
    },
  });
  assert.deepEqual(answer, { outcome: "stale" });
  assert.deepEqual([...factory.effects("n")], []);
});
