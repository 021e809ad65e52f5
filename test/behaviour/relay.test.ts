import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import type { AppEvents, DispatchPhase } from "../../src/events.ts";
import { slotOf } from "../../src/id.ts";
import { type AnyDefinition, defineJob, idempotencyKey } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { EscapementOptions } from "../../src/settings.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { slotCount } from "../../src/store/partitions.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, ambiguous, refused, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const minute = 60_000;
/** Few partitions: over a network each of them is looked after by real trips. */
const relay = { partitions: 2 };

interface Scene {
  readonly clock: VirtualClock;
  readonly broker: ScriptedTransport;
  readonly store: FaultyStore;
  node(jobs: readonly AnyDefinition[], options?: EscapementOptions): Promise<TestEscapement>;
  /** A node that stays behind as a killed process does: its partitions, its presence and its silence. */
  readonly retries: AppEvents["dispatchRetry"][];
}

function scene(bedStore: StoreFactory): Scene {
  const clock = new VirtualClock();
  const store = new FaultyStore(bedStore);
  const retries: AppEvents["dispatchRetry"][] = [];
  return {
    clock,
    store,
    retries,
    broker: new ScriptedTransport(clock),
    node: async (jobs, options = {}) => {
      const app = new TestEscapement({ store, jobs, relay, log: silentLogger, ...options }, clock);
      app.on("error", () => {});
      app.on("dispatchRetry", (event) => retries.push(event));
      await app.start({ roles: ["relay", "planner", "worker"] });
      await clock.advance(0);
      return app;
    },
  };
}

function phases(retries: readonly AppEvents["dispatchRetry"][]): DispatchPhase[] {
  return retries.map(({ phase }) => phase);
}

onEveryStore("relay", (bed) => {
  describe("firing", () => {
    test("a job with a route is published when it is due and never run here [B1]", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob<{ n: number }>({
        name: "pay",
        route: broker.route(),
        run: () => assert.fail("the relay never runs handlers"),
      });
      await using app = await node([job]);
      const { id } = await app.enqueue(job, { n: 1 });
      await clock.advance(1_000);
      assert.deepEqual(broker.ids, [id]);
      const [arrival] = broker.arrivals;
      assert.equal(arrival?.message.body, '{"n":1}');
      assert.equal(arrival?.message.destination, "topic");
      assert.equal(arrival?.message.key, id, "without a concurrency key the id keeps it together");
      const stored = await app.get(id);
      assert.deepEqual([stored?.state, stored?.attempt, stored?.rollbacks], ["succeeded", 1, 0]);
    });

    test("jobs that are due one after the other share their trips, and none is late for it [B8]", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob<number>({ name: "pay", route: broker.route() });
      await using app = await node([job], { relay: { partitions: 1 } });
      const [start, many] = [clock.now() + 500, 400];
      await app.enqueueMany(
        job,
        Array.from({ length: many }, (_, n) => ({ input: n, id: `d${n}`, runAt: new Date(start + n) })),
      );
      await clock.advance(2_000);
      assert.equal(new Set(broker.ids).size, many);
      assert.equal(broker.ids.length, many);
      assert.ok(broker.batches.length <= 50, `${broker.batches.length} calls of the broker`);
      for (const { at, id } of broker.arrivals) {
        const late = at - start - Number(id.slice(1));
        assert.ok(late >= 0 && late <= 20, `${id} was fired ${late} ms after its time`);
      }
      assert.equal(await app.count({ states: ["succeeded"] }), many);
    });

    test("never early, and at its very time when it was known before [B7]", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob<number>({ name: "pay", route: broker.route() });
      await using app = await node([job]);
      const start = clock.now();
      const delays = [0, 1, 700, 1_500, 10 * minute];
      await app.enqueueMany(
        job,
        delays.map((delay, input) => ({ input, id: `d${delay}`, delay })),
      );
      await clock.advance(11 * minute);
      assert.deepEqual(
        broker.ids,
        delays.map((delay) => `d${delay}`),
      );
      for (const [index, { at, id }] of broker.arrivals.entries()) {
        const late = at - start - (delays[index] ?? 0);
        assert.ok(late >= 0 && late <= 20, `${id} was fired ${late} ms after its time`);
      }
    });

    test("the key of an occurrence is made of schedule and time: every day's its own, a second firing the same [B4]", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob<null>({ name: "report", route: broker.route() });
      broker.reply = (_, arrival) =>
        broker.arrivals.length === 1 && arrival === 1 ? ambiguous : acknowledged;
      await using app = await node([job]);
      await app.schedule("hourly", { cron: "0 * * * *" }, job, null);
      await clock.advance(61 * minute);
      await clock.advance(60 * minute);
      const keys = [1, 1, 2].map((hour) =>
        idempotencyKey({
          namespace: "default",
          id: "",
          schedule: "hourly",
          fireAt: new Date(Date.UTC(2026, 0, 1, hour)),
        }),
      );
      assert.deepEqual(
        broker.arrivals.map(({ key }) => key),
        keys,
      );
    });

    test("the concurrency key, validated as the handler would see it, is the message's key", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob({
        name: "pay",
        input: z.object({ customer: z.number().transform((n) => `c${n}`) }),
        concurrency: { key: (input) => input.customer, limit: 1 },
        route: broker.route(),
      });
      await using app = await node([job]);
      await app.enqueue(job, { customer: 42 });
      await clock.advance(1_000);
      assert.equal(broker.arrivals[0]?.message.key, "c42");
    });

    test("counted as fired only when the broker has acknowledged; what is committed late, below the mark, fires too [B2]", async () => {
      const { clock, broker, node } = scene(bed.store());
      broker.delayMs = 5_000;
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using app = await node([job], { relay: { partitions: 1 } });
      await app.enqueue(job, null, { id: "first" });
      await clock.advance(3_000);
      assert.deepEqual(broker.ids, ["first"]);
      assert.equal((await app.get("first"))?.state, "active");
      await clock.advance(3_000);
      assert.equal((await app.get("first"))?.state, "succeeded");
      await app.enqueue(job, null, { id: "late", runAt: new Date(clock.now() - 60 * minute) });
      await clock.advance(6_000);
      assert.deepEqual(broker.ids, ["first", "late"]);
      assert.equal((await app.get("late"))?.state, "succeeded");
    });

    test("cancelled or edited before it was named, it does not fire as it was; afterwards a cancel is too late", async () => {
      const { clock, broker, node } = scene(bed.store());
      const job = defineJob<number>({ name: "pay", route: broker.route() });
      await using app = await node([job]);
      // Due soon: read ahead already when they change.
      for (const id of ["cancelled", "edited", "moved"]) await app.enqueue(job, 1, { id, delay: 900 });
      await clock.advance(500);
      await app.cancel("cancelled");
      await app.update("edited", { input: 2 });
      await app.update("moved", { delay: "1h" });
      broker.delayMs = 2_000;
      await clock.advance(1_000);
      assert.deepEqual(
        broker.arrivals.map(({ id, message }) => [id, message.body]),
        [["edited", "2"]],
      );
      assert.equal((await app.cancel("edited")).requested, 1);
      await clock.advance(3_000);
      assert.equal((await app.get("edited"))?.state, "succeeded", "a success that still comes wins");
      assert.equal((await app.get("cancelled"))?.state, "cancelled");
    });

    test("a paused queue holds its routed jobs; names that no relay knows are left alone, and block nobody", async () => {
      const { clock, broker, node } = scene(bed.store());
      const route = broker.route();
      const define = (name: string) => defineJob<null>({ name, route, queue: name });
      const [known, unknown, held] = [define("known"), define("unknown"), define("held")];
      await using app = await node([known, held]);
      await app.pauseQueue("held");
      await clock.advance(1_000);
      const many = (name: string) =>
        Array.from({ length: 20 }, (_, n) => ({ input: null, id: `${name}${n}` }));
      await app.enqueueMany(unknown, many("u"));
      await app.enqueueMany(held, many("h"));
      await app.enqueue(known, null, { id: "k" });
      await clock.advance(2_000);
      assert.deepEqual(broker.ids, ["k"]);
      await app.resumeQueue("held");
      await clock.advance(2_000);
      assert.equal(broker.ids.length, 21);
      assert.equal(await app.count({ names: ["unknown"], states: ["waiting"] }), 20);
    });
  });

  describe("when a publish fails", () => {
    test("a refusal rolls back, counted as a rollback and not as a try, and is tried again with backoff [D3, D5]", async () => {
      const { clock, broker, node, retries } = scene(bed.store());
      broker.reply = (_, arrival) => (arrival <= 2 ? refused() : acknowledged);
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using app = await node([job]);
      const { id } = await app.enqueue(job, null);
      await clock.advance(minute);
      const [first, second, third] = broker.arrivals.map(({ at }) => at) as [number, number, number];
      assert.ok(second - first >= 900 && third - second > second - first, "it waits, and then longer");
      assert.equal(new Set(broker.arrivals.map(({ key }) => key)).size, 1);
      const stored = await app.get(id);
      assert.deepEqual([stored?.state, stored?.attempt, stored?.rollbacks], ["succeeded", 1, 2]);
      assert.deepEqual(phases(retries), ["publish", "publish"]);
      assert.equal((await app.trail(id)).filter(({ kind }) => kind === "rolled-back").length, 2);
    });

    test("a receiver that asks to be left alone is, and a refusal for good is the end [D3]", async () => {
      const { clock, broker, node } = scene(bed.store());
      broker.reply = ({ body }, arrival) => {
        if (body === "1") return refused({ permanent: true });
        return arrival === 1 ? refused({ retryAfterMs: 30_000 }) : acknowledged;
      };
      const job = defineJob<number>({ name: "pay", route: broker.route() });
      await using app = await node([job]);
      await app.enqueue(job, 1, { id: "bad" });
      await app.enqueue(job, 2, { id: "later" });
      await clock.advance(29_000);
      assert.deepEqual(broker.ids.toSorted(), ["bad", "later"]);
      const bad = await app.get("bad");
      assert.deepEqual([bad?.state, bad?.error?.message], ["dead", "the broker is full"]);
      await clock.advance(5_000);
      assert.equal((await app.get("later"))?.state, "succeeded");
    });

    test("after a long outage one that is still refused does not keep back the others, which get through [D3]", async () => {
      const { clock, broker, node } = scene(bed.store());
      const doomed = defineJob<null>({ name: "doomed", delivery: "at-most-once", route: broker.route() });
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      let isDown = true;
      broker.reply = ({ key }) => (isDown || key.endsWith("{right}") ? refused() : acknowledged);
      await using app = await node([doomed, job], { acceptWeakDurability: true });
      // Each of them is a publish of its own that nothing gets through with: the transport is left alone for ever longer.
      for (let n = 0; n < 10; n += 1) {
        await app.enqueue(doomed, null);
        await clock.advance(6_000);
      }
      await app.enqueue(doomed, null);
      await clock.advance(100);
      isDown = false;
      // Both partitions have sent their first before either hears of it.
      broker.delayMs = 300;
      const [first, second] = ["right", "left"].map((tag) => slotOf(`{${tag}}`) < slotCount / 2);
      assert.notEqual(first, second, "the tags lead to different partitions");
      await app.enqueue(job, null, { id: "refused:{right}" });
      await app.enqueueMany(
        job,
        Array.from({ length: 20 }, (_, n) => ({ input: null, id: `fine-${n}:{left}` })),
      );
      await clock.advance(6_500);
      const fine = broker.ids.filter((id) => id.startsWith("fine"));
      assert.equal(fine.length, 20, "all of them went when the transport was asked again");
    });

    test("an ambiguous publish is made again with the same key, until somebody says yes", async () => {
      const { clock, broker, node, retries } = scene(bed.store());
      broker.reply = (_, arrival) => (arrival === 1 ? "never" : acknowledged);
      const job = defineJob<null>({
        name: "pay",
        delivery: "effectively-once",
        route: broker.route({ dispatchTimeoutMs: 4_000 }),
      });
      await using app = await node([job]);
      const { id } = await app.enqueue(job, null);
      await clock.advance(20_000);
      assert.equal(broker.arrivals.length, 2);
      assert.equal(broker.arrivals[0]?.key, broker.arrivals[1]?.key);
      assert.equal(broker.arrivals[0]?.message.dedupeId, broker.arrivals[1]?.message.dedupeId);
      const stored = await app.get(id);
      assert.deepEqual([stored?.state, stored?.attempt, stored?.rollbacks], ["succeeded", 1, 1]);
      assert.deepEqual(
        retries.map(({ phase, ambiguous: unsure }) => [phase, unsure]),
        [["publish", true]],
      );
    });

    test("at-most-once: published once, lost when nobody knows, dead when refused", async () => {
      const { clock, broker, node } = scene(bed.store());
      broker.reply = ({ body }) => (body === "1" ? acknowledged : body === "2" ? ambiguous : refused());
      const job = defineJob<number>({ name: "pay", delivery: "at-most-once", route: broker.route() });
      await using app = await node([job], { acceptWeakDurability: true });
      for (const input of [1, 2, 3]) await app.enqueue(job, input, { id: `o${input}` });
      await clock.advance(minute);
      assert.deepEqual(broker.ids.toSorted(), ["o1", "o2", "o3"]);
      const states = await Promise.all(["o1", "o2", "o3"].map(async (id) => (await app.get(id))?.state));
      assert.deepEqual(states, ["succeeded", "lost", "dead"]);
      assert.ok(
        broker.batches.every((size) => size === 1),
        "one claim at a time",
      );
      await app.redrive("o2");
      broker.reply = () => acknowledged;
      await clock.advance(5_000);
      assert.equal((await app.get("o2"))?.state, "succeeded", "a person may");
      const [, again] = broker.arrivals.filter(({ id }) => id === "o2");
      assert.match(again?.message.dedupeId ?? "", /:1$/, "the broker's window does not swallow a redrive");
    });
  });

  describe("when the store fails", () => {
    test("the naming cannot be written: nothing is published; the replay publishes exactly once in total [D2, D5]", async () => {
      for (const fault of ["refuse", "lose-reply"] as const) {
        const { clock, broker, store, node, retries } = scene(bed.store());
        const job = defineJob<null>({ name: "pay", route: broker.route() });
        await using app = await node([job]);
        store.fail(fault, ["checkpoint"]);
        const { id } = await app.enqueue(job, null);
        await clock.advance(20_000);
        assert.deepEqual(broker.ids, [], `${fault}: fail closed`);
        assert.deepEqual(phases(retries), ["dispatched_write"]);
        store.heal();
        await clock.advance(20_000);
        assert.deepEqual(broker.ids, [id]);
        assert.equal((await app.get(id))?.state, "succeeded");
      }
    });

    test("an acknowledgement that cannot be written is kept until it is, and nothing is published twice", async () => {
      for (const fault of ["refuse", "lose-reply"] as const) {
        const { clock, broker, store, node } = scene(bed.store());
        broker.delayMs = 500;
        const job = defineJob<null>({ name: "pay", route: broker.route() });
        await using app = await node([job]);
        const { id } = await app.enqueue(job, null);
        await clock.advance(300);
        assert.deepEqual(broker.ids, [id]);
        store.fail(fault, ["checkpoint"]);
        await clock.advance(15_000);
        store.heal();
        await clock.advance(15_000);
        assert.deepEqual(broker.ids, [id], fault);
        assert.equal((await app.get(id))?.state, "succeeded");
      }
    });

    test("a rollback that cannot be written is counted; the job is published once its dispatch timeout has passed [D4, D5]", async () => {
      const { clock, broker, store, node, retries } = scene(bed.store());
      broker.reply = (_, arrival) => (arrival === 1 ? refused() : acknowledged);
      broker.delayMs = 500;
      const job = defineJob<null>({ name: "pay", route: broker.route({ dispatchTimeoutMs: 60_000 }) });
      await using app = await node([job]);
      const { id } = await app.enqueue(job, null);
      await clock.advance(300);
      store.fail("refuse", ["checkpoint"]);
      await clock.advance(58_000);
      assert.deepEqual(broker.ids, [id], "not before");
      assert.equal((await app.get(id))?.state, "active");
      await clock.advance(5_000);
      assert.deepEqual(broker.ids, [id, id]);
      assert.deepEqual(phases(retries), ["publish", "rollback_write"]);
      store.heal();
      await clock.advance(10_000);
      const stored = await app.get(id);
      assert.deepEqual([stored?.state, stored?.attempt], ["succeeded", 1]);
      assert.deepEqual(broker.ids, [id, id], "and not once more");
    });

    test("a rollback that was written, and only its answer lost, is not published beside its turn [D4]", async () => {
      const { clock, broker, store, node } = scene(bed.store());
      broker.reply = (_, arrival) => (arrival === 1 ? refused() : acknowledged);
      broker.delayMs = 500;
      const job = defineJob<null>({ name: "pay", route: broker.route({ dispatchTimeoutMs: 5_000 }) });
      await using app = await node([job]);
      const { id } = await app.enqueue(job, null);
      await clock.advance(300);
      store.fail("lose-reply", ["checkpoint"]);
      await clock.advance(700);
      await app.cancel(id);
      await clock.advance(20_000);
      store.heal();
      await clock.advance(10_000);
      assert.deepEqual(broker.ids, [id], "it was cancelled while it waited");
      assert.equal((await app.get(id))?.state, "cancelled");
    });

    test("the dispatch timeout is the route's own [D6]", async () => {
      const { clock, broker, store, node } = scene(bed.store());
      broker.reply = (_, arrival) => (arrival === 1 ? refused() : acknowledged);
      broker.delayMs = 500;
      const quick = defineJob<null>({ name: "quick", route: broker.route({ dispatchTimeoutMs: 10_000 }) });
      const slow = defineJob<null>({ name: "slow", route: broker.route({ dispatchTimeoutMs: 40_000 }) });
      await using app = await node([quick, slow]);
      await app.enqueue(quick, null, { id: "quick" });
      await app.enqueue(slow, null, { id: "slow" });
      await clock.advance(300);
      store.fail("refuse", ["checkpoint"]);
      await clock.advance(20_000);
      assert.deepEqual(broker.ids.toSorted(), ["quick", "quick", "slow"]);
      await clock.advance(30_000);
      assert.deepEqual(broker.ids.toSorted(), ["quick", "quick", "slow", "slow"]);
      store.heal();
      await clock.advance(5_000);
      assert.equal(await app.count({ states: ["succeeded"] }), 2);
    });
  });
});
