import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyDefinition, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const leaseMs = 30_000;

onEveryStore("raising the number of partitions", (bed) => {
  function fleet() {
    const clock = new VirtualClock();
    const inner = bed.store();
    const broker = new ScriptedTransport(clock);
    const start = async (jobs: readonly AnyDefinition[], partitions: number) => {
      const lines: string[] = [];
      const log = { ...silentLogger, info: (_: unknown, text?: string) => void lines.push(text ?? "") };
      const wire = new FaultyStore(inner);
      const options = {
        store: wire,
        jobs,
        poll: 1_000,
        relay: { partitions },
        acceptWeakDurability: true,
        log,
      };
      const app = new TestEscapement(options, clock);
      const mine = new Set<number>();
      const lost: number[] = [];
      app.on("error", () => {});
      app.on("partition", ({ partition, change }) => {
        if (change === "acquired") mine.add(partition);
        else mine.delete(partition);
        if (change === "lost") lost.push(partition);
      });
      await app.start({ roles: ["relay"] });
      await clock.advance(0);
      return { app, mine, lost, wire, lines };
    };
    return { clock, broker, start };
  }

  test("a relay that asks for more makes the others give back theirs: nothing is lost, nothing fires twice, all are served again", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const once = defineJob<null>({ name: "once", delivery: "at-most-once", route: broker.route() });
    const [first, second] = [await start([job, once], 4), await start([job, once], 4)];
    await clock.advance(3_000);
    assert.deepEqual([first.mine.size, second.mine.size], [2, 2]);
    broker.delayMs = 1_500;
    const many = (name: string, count: number) =>
      Array.from({ length: count }, (_, n) => ({ input: null, id: `${name}${n}` }));
    // On their way to the broker while the partitions change.
    await first.app.enqueueMany(job, many("under way", 20));
    await first.app.enqueueMany(once, many("once", 4));
    await clock.advance(200);
    assert.ok(broker.arrivals.length >= 20);
    const third = await start([job, once], 8);
    await first.app.enqueueMany(job, many("meanwhile", 20));
    await clock.advance(10_000);
    assert.deepEqual([first, second, third].map(({ mine }) => mine.size).toSorted(), [2, 3, 3]);
    const all = [first, second, third].flatMap(({ mine }) => [...mine]);
    assert.deepEqual(all.toSorted(), [0, 1, 2, 3, 4, 5, 6, 7]);
    await first.app.enqueueMany(job, many("after", 20));
    await clock.advance(10_000);
    assert.equal(new Set(broker.ids).size, 64);
    assert.equal(broker.ids.length, 64, "each was published once");
    assert.equal(
      await first.app.count({ states: ["succeeded"] }),
      64,
      "also those that may be published only once",
    );
    assert.deepEqual(
      [first, second, third].flatMap(({ lost }) => lost),
      [],
    );
    const logged = first.lines.filter((line) => line.includes("never lowered"));
    assert.equal(logged.length, 1, "a relay that asks for fewer logs it once");
    for (const { app } of [first, second, third]) await app[Symbol.asyncDispose]();
  });

  test("a dead relay holds them up for its lease at the most; what it had named goes to the new partitions", async () => {
    const { clock, broker, start } = fleet();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const dead = await start([job], 2);
    broker.reply = () => "never";
    await dead.app.enqueue(job, null, { id: "named" });
    await clock.advance(100);
    assert.deepEqual(broker.ids, ["named"]);
    dead.wire.fail("refuse", [
      "renewPartitions",
      "releasePartitions",
      "acquirePartitions",
      "checkpoint",
      "putNode",
    ]);
    broker.reply = () => ({ kind: "acknowledged" });
    const heir = await start([job], 3);
    await clock.advance(leaseMs + 2_000);
    assert.equal(heir.mine.size, 3);
    assert.deepEqual(broker.ids, ["named", "named"]);
    assert.equal((await heir.app.get("named"))?.state, "succeeded");
    await heir.app[Symbol.asyncDispose]();
    await dead.app[Symbol.asyncDispose]();
  });
});
