import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyDefinition, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { EscapementOptions } from "../../src/settings.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const minute = 60_000;
const leaseMs = 30_000;
const partitionVerbs = [
  "acquirePartitions",
  "renewPartitions",
  "releasePartitions",
  "checkpoint",
  "putNode",
] as const;

onEveryStore("relays", (bed) => {
  /** Nodes on one store, each with a wire of its own, so that one can be cut off from it. */
  function fleet() {
    const clock = new VirtualClock();
    const inner = bed.store();
    const broker = new ScriptedTransport(clock);
    const owned = new Map<TestEscapement, Set<number>>();
    const start = async (jobs: readonly AnyDefinition[], options: EscapementOptions = {}) => {
      const wire = new FaultyStore(inner);
      const settings = { store: wire, jobs, poll: 1_000, relay: { partitions: 4 }, log: silentLogger };
      const app = new TestEscapement({ ...settings, ...options }, clock);
      const mine = new Set<number>();
      owned.set(app, mine);
      app.on("error", () => {});
      app.on("partition", ({ partition, change }) => {
        if (change === "acquired") mine.add(partition);
        else mine.delete(partition);
      });
      await app.start({ roles: ["relay"] });
      await clock.advance(0);
      return { app, wire, mine };
    };
    /** As a kill would leave it: it says nothing any more, and hears nothing. */
    const kill = ({ wire }: { wire: FaultyStore }): void =>
      wire.fail("refuse", [...partitionVerbs, "partitionDue", "nodes"]);
    return { clock, broker, owned, start, kill };
  }

  test("partitions are shared out evenly, handed over when a relay joins or stops, and never held twice", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    await using first = (await start([job])).app;
    const one = new Set<number>();
    first.on(
      "partition",
      ({ partition, change }) => void (change === "acquired" ? one.add(partition) : one.delete(partition)),
    );
    const second = await start([job]);
    await clock.advance(3_000);
    assert.equal(second.mine.size, 2);
    const third = await start([job]);
    await clock.advance(3_000);
    assert.deepEqual([second.mine.size, third.mine.size].toSorted(), [1, 1]);
    const stopping = Promise.all([second.app.stop(), third.app.stop()]);
    await clock.advance(0);
    await stopping;
    const stoppedAt = clock.now();
    await first.enqueueMany(
      job,
      Array.from({ length: 20 }, () => ({ input: null })),
    );
    await clock.advance(1_500);
    assert.equal(broker.arrivals.length, 20, "everything that they gave back is served at once");
    assert.ok(broker.arrivals.every(({ at }) => at - stoppedAt <= 1_500));
    assert.equal(new Set(broker.ids).size, 20);
  });

  test("the partitions of a dead relay are taken over within its lease and a second; what it had named fires again, the same key [B6]", async () => {
    const { clock, broker, start, kill } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const dead = await start([job]);
    broker.reply = () => "never";
    await dead.app.enqueueMany(
      job,
      Array.from({ length: 10 }, (_, n) => ({ input: null, id: `n${n}` })),
    );
    await clock.advance(100);
    assert.equal(broker.arrivals.length, 10);
    kill(dead);
    const diedAt = clock.now();
    broker.reply = () => acknowledged;
    const heir = await start([job]);
    await heir.app.enqueueMany(
      job,
      Array.from({ length: 10 }, (_, n) => ({ input: null, id: `m${n}` })),
    );
    await clock.advance(leaseMs + 1_000);
    assert.equal(heir.mine.size, 4);
    assert.equal(broker.arrivals.length, 30);
    assert.ok(broker.arrivals.slice(10).every(({ at }) => at - diedAt <= leaseMs + 1_000));
    assert.equal(
      new Set(broker.arrivals.map(({ key }) => key)).size,
      20,
      "the copies carry the keys of the first",
    );
    assert.equal(await heir.app.count({ states: ["succeeded"] }), 20);
    await heir.app[Symbol.asyncDispose]();
    await dead.app[Symbol.asyncDispose]();
  });

  test("a holder that cannot renew stops publishing before its lease ends [B6]", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const cut = await start([job]);
    await clock.advance(5_000);
    // Renewals fail, checkpoints do not: nothing but its own clock tells it to stop.
    cut.wire.fail("refuse", ["renewPartitions"]);
    const cutAt = clock.now();
    for (let second = 0; second < 60; second += 1) {
      await cut.app.enqueue(job, null);
      await clock.advance(1_000);
    }
    const last = Math.max(...broker.arrivals.map(({ at }) => at));
    assert.ok(
      last - cutAt < leaseMs * 0.8,
      `it published ${last - cutAt} ms after its last renewal could have been`,
    );
    cut.wire.heal();
    await clock.advance(2_000);
    assert.equal(broker.arrivals.length, 60, "nobody took them, so it goes on");
    assert.equal(new Set(broker.ids).size, 60);
    await cut.app[Symbol.asyncDispose]();
  });

  test("no publish begins that could not be answered in time, so that none is lost by it [B6]", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", delivery: "at-most-once", route: broker.route() });
    const cut = await start([job]);
    await clock.advance(5_000);
    broker.delayMs = leaseMs / 6;
    cut.wire.fail("refuse", ["renewPartitions"]);
    for (let turn = 0; turn < 20; turn += 1) {
      await cut.app.enqueue(job, null);
      await clock.advance(leaseMs / 20);
    }
    assert.ok(broker.arrivals.length > 5, "it went on while there was time");
    assert.ok(broker.arrivals.length < 20, "and stopped");
    cut.wire.heal();
    await clock.advance(2 * leaseMs);
    assert.deepEqual([await cut.app.count({ states: ["lost"] }), broker.arrivals.length], [0, 20]);
    assert.equal(await cut.app.count({ states: ["succeeded"] }), 20);
    await cut.app[Symbol.asyncDispose]();
  });

  test("a partition that is lost while it is being given back keeps nobody from its share", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const first = await start([job]);
    broker.reply = () => "never";
    await first.app.enqueueMany(
      job,
      Array.from({ length: 40 }, () => ({ input: null })),
    );
    await clock.advance(100);
    const second = await start([job]);
    await clock.advance(3_000);
    assert.equal(second.mine.size, 0, "what is given back waits for the broker's word");
    first.wire.fail("refuse", partitionVerbs);
    broker.reply = () => acknowledged;
    await clock.advance(leaseMs + 1_000);
    assert.equal(second.mine.size, 4);
    const changes: string[] = [];
    first.app.on("partition", ({ change }) => void changes.push(change));
    first.wire.heal();
    first.wire.fail("refuse", ["checkpoint"]);
    await clock.advance(15_000);
    assert.deepEqual(changes.toSorted(), ["acquired", "acquired", "lost", "lost", "lost", "lost"]);
    first.wire.heal();
    await first.app[Symbol.asyncDispose]();
    await second.app[Symbol.asyncDispose]();
  });

  test("an owner that comes back after its lease writes nothing: its epoch is stale [B6]", async () => {
    const { clock, broker, start, kill } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const paused = await start([job]);
    broker.delayMs = 20_000;
    await paused.app.enqueue(job, null, { id: "x" });
    await clock.advance(100);
    assert.deepEqual(broker.ids, ["x"]);
    kill(paused);
    const heir = await start([job]);
    await clock.advance(leaseMs + 2_000);
    assert.deepEqual(broker.ids, ["x", "x"]);
    const lost: number[] = [];
    paused.app.on("partition", ({ partition, change }) => {
      if (change === "lost") lost.push(partition);
    });
    paused.wire.heal();
    await clock.advance(15_000);
    assert.ok(lost.length > 0, "it learns that it is no longer the owner");
    assert.equal((await heir.app.get("x"))?.state, "active", "only the heir may say how it ended");
    await clock.advance(10_000);
    const job1 = await heir.app.get("x");
    assert.deepEqual([job1?.state, job1?.token], ["succeeded", 2]);
    await heir.app[Symbol.asyncDispose]();
    await paused.app[Symbol.asyncDispose]();
  });

  test("at-most-once: what a dead relay had named is lost with its reason, never published again", async () => {
    const { clock, broker, start, kill } = fleet();
    const once = defineJob<null>({ name: "once", delivery: "at-most-once", route: broker.route() });
    const dead = await start([once], { acceptWeakDurability: true });
    broker.reply = () => "never";
    await dead.app.enqueue(once, null, { id: "x" });
    await clock.advance(100);
    kill(dead);
    broker.reply = () => acknowledged;
    const heir = await start([once], { acceptWeakDurability: true });
    await clock.advance(2 * minute);
    assert.deepEqual(broker.ids, ["x"]);
    const job = await heir.app.get("x");
    assert.equal(job?.state, "lost");
    assert.match(job?.reason ?? "", /its relay lost the partition/);
    await heir.app[Symbol.asyncDispose]();
    await dead.app[Symbol.asyncDispose]();
  });

  test("a stop waits for the broker's word, writes it, and publishes nothing more", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    broker.delayMs = 3_000;
    const node = await start([job]);
    await node.app.enqueue(job, null, { id: "x" });
    await clock.advance(100);
    const stopping = node.app.stop();
    await node.wire.open({ namespace: "default", clock, log: silentLogger }).then(async (store) => {
      await clock.advance(5_000);
      await stopping;
      const [stored] = await store.get({ ids: ["x"] });
      assert.equal(stored?.state, "succeeded");
      assert.equal(
        (await store.acquirePartitions({ owner: "next", leaseMs, partitions: 4, want: 4 })).length,
        4,
      );
      await store.close();
    });
    assert.deepEqual(broker.ids, ["x"]);
    assert.ok(broker.isClosed);
  });

  test("a stop whose time is up writes what the broker said, also at the second try", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    broker.delayMs = 1_000;
    const node = await start([job]);
    await node.app.enqueue(job, null, { id: "x" });
    await clock.advance(500);
    assert.deepEqual(broker.ids, ["x"]);
    const store = await node.wire.open({ namespace: "default", clock, log: silentLogger });
    node.wire.fail("refuse", ["checkpoint"]);
    await clock.advance(1_000);
    const stopping = node.app.stop({ timeout: 5_000 });
    await clock.advance(4_999);
    node.wire.fail("refuse", ["checkpoint"], 1);
    await clock.advance(2_000);
    await stopping;
    assert.equal((await store.get({ ids: ["x"] }))[0]?.state, "succeeded");
    await store.close();
  });

  test("one that is still opening its transports is left no share: the others take over what a dead relay held [B6]", async () => {
    const { clock, broker, start, kill } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const dead = await start([job]);
    const heir = await start([job]);
    await clock.advance(3_000);
    assert.deepEqual([dead.mine.size, heir.mine.size], [2, 2]);
    const opening = Promise.withResolvers<void>();
    const slow = new ScriptedTransport(clock);
    const open = async () => {
      await opening.promise;
      return broker.open();
    };
    const held = { kind: "slow", address: "slow", open };
    const starting = start([defineJob<null>({ name: "pay", route: slow.route({ transport: held }) })]);
    kill(dead);
    await clock.advance(leaseMs + 1_000);
    assert.equal(heir.mine.size, 4);
    opening.resolve();
    const last = await starting;
    await clock.advance(3_000);
    assert.deepEqual([heir.mine.size, last.mine.size], [2, 2]);
    for (const { app } of [last, heir, dead]) await app[Symbol.asyncDispose]();
  });

  test("a process without a route takes no partition", async () => {
    const { clock, start } = fleet();
    const plain = await start([defineJob<null>({ name: "plain", run: () => {} })]);
    await clock.advance(5_000);
    assert.equal(plain.mine.size, 0);
    assert.deepEqual((await plain.app.nodes())[0]?.roles, []);
    await plain.app[Symbol.asyncDispose]();
  });
});
