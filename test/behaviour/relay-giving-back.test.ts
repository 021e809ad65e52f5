import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const leaseMs = 30_000;
const second = 1_000;

onEveryStore("a relay that loses a partition or gives it back", (bed) => {
  async function scene() {
    const clock = new VirtualClock();
    const wire = new FaultyStore(bed.store());
    const broker = new ScriptedTransport(clock);
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const app = new TestEscapement(
      { store: wire, jobs: [job], relay: { partitions: 1 }, log: silentLogger },
      clock,
    );
    const changes: string[] = [];
    app.on("error", () => {});
    app.on("partition", ({ change }) => void changes.push(change));
    await app.start({ roles: ["relay"] });
    await clock.advance(0);
    const store = await wire.open({ namespace: "default", clock, log: silentLogger });
    /** Somebody else asks for the partition. */
    const acquire = (owner: string) => store.acquirePartitions({ owner, leaseMs, partitions: 1, want: 1 });
    return { clock, wire, broker, job, app, store, acquire, changes };
  }

  /** As an operator would who gives the partition away while its owner does not look. */
  async function takeAway(store: Store): Promise<void> {
    const [held] = (await store.partitions()).partitions;
    assert(held?.owner);
    const { owner, partition, epoch } = held;
    await store.releasePartitions({ owner, held: [{ partition, epoch }] });
    const granted = await store.acquirePartitions({ owner: "heir", leaseMs, partitions: 1, want: 1 });
    assert.equal(granted.length, 1);
  }

  test("told by a checkpoint that its epoch is stale, it publishes nothing more of what it had named [B6]", async () => {
    const { clock, broker, job, app, store, changes } = await scene();
    const at = clock.now() + second;
    await app.enqueue(job, null, { id: "later", runAt: new Date(at) });
    await clock.advance(second - 100);
    assert.equal((await app.get("later"))?.state, "active", "named ahead of its time");
    await takeAway(store);
    // Something to settle, so that there is a checkpoint before the renewal tells of the loss.
    await app.enqueue(job, null, { id: "now" });
    await clock.advance(2 * second);
    assert.deepEqual(broker.ids, [], "both are the heir's");
    assert.deepEqual(changes, ["acquired", "lost"]);
    await app[Symbol.asyncDispose]();
    await store.close();
  });

  test("with publishes unanswered at the end of a stop, it keeps the partition until its lease is over [B6]", async () => {
    const { clock, broker, job, app, store, acquire, changes } = await scene();
    broker.reply = () => "never";
    await app.enqueue(job, null, { id: "x" });
    await clock.advance(100);
    assert.deepEqual(broker.ids, ["x"]);
    const stopping = app.stop({ timeout: second });
    await clock.advance(2 * second);
    assert.deepEqual(changes, ["acquired", "lost"]);
    assert.deepEqual(await acquire("hasty"), [], "what is on its way may still arrive");
    await clock.advance(leaseMs);
    const [grant] = await acquire("heir");
    assert.deepEqual(
      grant?.named.map(({ id, token }) => [id, token]),
      [["x", 2]],
    );
    await clock.advance(10 * leaseMs);
    await stopping;
    await app[Symbol.asyncDispose]();
    await store.close();
  });

  test("a partition that it gives back goes only when the broker has answered for everything [B6]", async () => {
    const { clock, broker, job, app, store, acquire, changes } = await scene();
    broker.delayMs = 5 * second;
    broker.reply = () => acknowledged;
    await app.enqueue(job, null, { id: "x" });
    await clock.advance(100);
    const stopping = app.stop({ timeout: 60 * second });
    await clock.advance(4 * second);
    assert.deepEqual([changes, await acquire("hasty")], [["acquired"], []]);
    await clock.advance(2 * second);
    await stopping;
    assert.deepEqual(changes, ["acquired", "released"]);
    assert.equal((await store.get({ ids: ["x"] }))[0]?.state, "succeeded");
    assert.deepEqual(
      (await acquire("heir")).map(({ named }) => named),
      [[]],
    );
    await app[Symbol.asyncDispose]();
    await store.close();
  });
});
