import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { EscapementOptions } from "../../src/settings.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, refused, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const minute = 60_000;

onEveryStore(
  "relay under load",
  (bed) => {
    function scene() {
      const clock = new VirtualClock();
      const store = new FaultyStore(bed.store());
      const broker = new ScriptedTransport(clock);
      const app = (jobs: EscapementOptions["jobs"], relay: EscapementOptions["relay"]) => {
        const made = new TestEscapement(
          { store, jobs: jobs ?? [], relay: relay ?? {}, log: silentLogger },
          clock,
        );
        made.on("error", () => {});
        return made;
      };
      return { clock, broker, store, app };
    }
    const items = (many: number, prefix: string, runAt: Date) =>
      Array.from({ length: many }, (_, n) => ({ input: null, id: `${prefix}${n}`, runAt }));

    test("a backlog drains at its rate, and what is freshly due does not wait behind it [B9]", async () => {
      const { clock, broker, app } = scene();
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using node = app([job], { partitions: 1, backlogPerSecond: 50 });
      await node.enqueueMany(job, items(1_500, "old", new Date(clock.now() - 60 * minute)));
      await node.start({ roles: ["relay"] });
      await clock.advance(2_000);
      for (let n = 0; n < 5; n += 1) {
        const dueAt = clock.now() + 2_000;
        await node.enqueue(job, null, { id: `fresh${n}`, delay: 2_000 });
        await clock.advance(3_000);
        const fresh = broker.arrivals.find(({ id }) => id === `fresh${n}`);
        assert.ok(fresh !== undefined && fresh.at - dueAt < 100, `fresh${n} kept its time`);
      }
      const drained = broker.ids.filter((id) => id.startsWith("old")).length;
      assert.ok(drained >= 750 && drained <= 900, `17 s at 50 a second, got ${drained}`);
      await clock.advance(20_000);
      assert.equal(new Set(broker.ids).size, 1_505);
      assert.equal(broker.ids.length, 1_505);
    });

    test("a destination that refuses everything holds up no other, and neither do jobs that are refused for themselves [D3]", async () => {
      const { clock, broker, app } = scene();
      const isBad = (id: string): boolean => id.startsWith("bad");
      for (const [destination, ofJob] of [
        ["elsewhere", undefined],
        ["topic", true],
      ] as const) {
        broker.reply = ({ headers }) =>
          isBad(headers["escapement-id"] ?? "")
            ? refused({ retryAfterMs: 4_000, ...(ofJob && { ofJob }) })
            : acknowledged;
        const bad = defineJob<null>({ name: "bad", route: broker.route({ destination }) });
        const good = defineJob<null>({ name: "good", route: broker.route() });
        await using node = app([bad, good], { partitions: 1 });
        await node.start({ roles: ["relay"] });
        for (let n = 0; n < 20; n += 1) {
          await node.enqueue(bad, null, { id: `bad ${destination} ${n}` });
          await clock.advance(200);
          const dueAt = clock.now();
          await node.enqueue(good, null, { id: `good ${destination} ${n}` });
          await clock.advance(200);
          const arrival = broker.arrivals.find(({ id }) => id === `good ${destination} ${n}`);
          assert.ok(
            arrival !== undefined && arrival.at - dueAt < 150,
            `good ${destination} ${n} kept its time`,
          );
        }
      }
    });

    test("without a rate a backlog is bounded by what may be in flight, and leaves the fresh their part [B9]", async () => {
      const { clock, broker, app } = scene();
      broker.delayMs = 1_000;
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using node = app([job], { partitions: 1, inFlight: 40 });
      await node.enqueueMany(job, items(2_000, "old", new Date(clock.now() - 60 * minute)));
      await node.start({ roles: ["relay"] });
      await clock.advance(3_000);
      const inFlight = await node.count({ states: ["active"] });
      assert.ok(inFlight <= 40, `${inFlight} are named`);
      const sentAt = clock.now();
      await node.enqueueMany(job, items(5, "fresh", new Date(clock.now())));
      await clock.advance(2_000);
      const fresh = broker.arrivals.filter(({ id }) => id.startsWith("fresh"));
      assert.equal(fresh.length, 5);
      assert.ok(
        fresh.every(({ at }) => at - sentAt <= 1_000),
        "the next turn at the latest",
      );
    });

    test("a broker that refuses everything costs few rollbacks, not one for each that waits; then all go through", async () => {
      const { clock, broker, app } = scene();
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using node = app([job], { partitions: 1, inFlight: 200 });
      let isDown = true;
      broker.reply = () => (isDown ? refused() : acknowledged);
      await node.enqueueMany(job, items(1_000, "j", new Date(clock.now())));
      await node.start({ roles: ["relay"] });
      await clock.advance(30_000);
      assert.ok(broker.arrivals.length < 400, `${broker.arrivals.length} tries in half a minute`);
      isDown = false;
      await clock.advance(2 * minute);
      assert.equal(await node.count({ states: ["succeeded"] }), 1_000);
    });

    test("partitions read ahead in turn, not all at the same moment [B8]", async () => {
      const { clock, broker, store, app } = scene();
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using node = app([job], { partitions: 16 });
      const start = clock.now() + 500;
      const dense = Array.from({ length: 3_000 }, (_, n) => ({
        input: null,
        id: `j${n}`,
        runAt: new Date(start + n),
      }));
      await node.enqueueMany(job, dense);
      await node.start({ roles: ["relay"] });
      await clock.advance(1_000);
      const reads: number[] = [];
      for (let step = 0; step < 20; step += 1) {
        const before = store.calls.length;
        await clock.advance(50);
        reads.push(store.calls.slice(before).filter((verb) => verb === "partitionDue").length);
      }
      assert.ok(Math.max(...reads) <= 4, `${Math.max(...reads)} of 16 read within 50 ms`);
      await clock.advance(3_000);
      assert.equal(broker.arrivals.length, dense.length);
    });

    test("one transport that hangs leaves the others their part", async () => {
      const { clock, broker, app } = scene();
      const hung = new ScriptedTransport(clock, "hung");
      hung.reply = () => "never";
      const stuck = defineJob<null>({ name: "stuck", route: hung.route() });
      const job = defineJob<null>({ name: "pay", route: broker.route() });
      await using node = app([stuck, job], { partitions: 1, inFlight: 20 });
      await node.enqueueMany(stuck, items(1_500, "s", new Date(clock.now())));
      await node.start({ roles: ["relay"] });
      await clock.advance(2_000);
      await node.enqueueMany(job, items(50, "j", new Date(clock.now())));
      await clock.advance(4_000);
      assert.equal(broker.arrivals.length, 50);
      assert.ok(hung.arrivals.length <= 10, `${hung.arrivals.length} hang`);
    });
  },
  "locally",
);
