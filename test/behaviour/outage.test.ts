import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/clock.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { onEveryStore } from "./stores.ts";

const leaseMs = 30_000;
const verbs = [
  ...["step", "finish", "claim", "extend", "reap", "report", "enqueue", "putNode", "prune", "dueSchedules"],
] as ("step" | "reap")[];

onEveryStore("outages", (bed) => {
  /** Nodes on one store, with jobs that take as long as their input says, and a list of their starts. */
  function scene() {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    const starts: string[] = [];
    const define = (name: string, delivery: "at-most-once" | "at-least-once") =>
      defineJob<number>({
        name,
        delivery,
        async run({ input, job, signal }) {
          starts.push(job.id);
          await sleep(clock, input, signal);
          signal.throwIfAborted();
        },
      });
    const jobs = [define("once", "at-most-once"), define("again", "at-least-once")];
    const start = async (over: FaultyStore = store): Promise<TestEscapement> => {
      const app = new TestEscapement(
        { store: over, jobs, lease: leaseMs, concurrency: 2, log: silentLogger },
        clock,
      );
      await app.start();
      return app;
    };
    return { clock, store, starts, start };
  }

  for (const fault of ["refuse", "stall"] as const) {
    for (const leases of [0.3, 0.7, 1.1, 2, 5]) {
      test(`an outage of ${leases} leases runs nothing twice that a living process has finished (${fault})`, async () => {
        const { clock, store, starts, start } = scene();
        await using first = await start();
        await using second = await start();
        await using third = await start();
        // They end before the outage, at its begin, and in it, as long as their leases last.
        const inputs = [9_000, 9_895, 10_500, 14_000, 18_000, 22_000];
        for (const [index, input] of inputs.entries()) {
          await first.enqueue(index % 2 === 0 ? "once" : "again", input, { id: `j${index}` });
        }
        // Just before the first heartbeat, when no more than two thirds are left of their leases.
        await clock.advance(9_900);
        store.fail(fault, verbs);
        await clock.advance(leases * leaseMs);
        store.heal();
        await using fresh = await start();
        await clock.advance(3 * leaseMs);
        assert.equal(starts.length, inputs.length, `started: ${starts.toSorted().join(", ")}`);
        const { jobs } = await fresh.list();
        assert.deepEqual(
          jobs.map(({ state, token, crashes }) => [state, token, crashes]),
          inputs.map(() => ["succeeded", 1, 0]),
        );
        await Promise.all([second, third].map((app) => app.count()));
      });
    }
  }

  test("a handler that an outage outlasts is stopped; at-least-once runs again without a lost try, at-most-once is dead", async () => {
    const { clock, store, starts, start } = scene();
    await using app = await start();
    await using other = await start();
    await app.enqueue("again", 2 * leaseMs, { id: "again" });
    await app.enqueue("once", 2 * leaseMs, { id: "once" });
    await clock.advance(1_000);
    store.fail("refuse", verbs);
    await clock.advance(1.5 * leaseMs);
    assert.equal(starts.length, 2);
    store.heal();
    await clock.advance(6 * leaseMs);
    const [again, once] = await Promise.all([other.get("again"), other.get("once")]);
    assert.deepEqual(starts.toSorted(), ["again", "again", "once"]);
    assert.deepEqual([again?.state, again?.attempt, again?.crashes], ["succeeded", 1, 0]);
    assert.deepEqual([once?.state, once?.crashes], ["dead", 0]);
  });

  test("what a process held that died in an outage is taken over within a lease of the outage's end", async () => {
    const { clock, store, starts, start } = scene();
    await using survivor = await start();
    const victim = await start();
    await survivor.enqueue("again", 10 * leaseMs, { id: "a" });
    await survivor.enqueue("again", 10 * leaseMs, { id: "b" });
    await survivor.enqueue("again", 10 * leaseMs, { id: "c" });
    await survivor.enqueue("again", 10 * leaseMs, { id: "d" });
    await clock.advance(1_000);
    store.fail("refuse", verbs);
    const stopping = victim.stop({ timeout: 0 });
    await clock.advance(3 * leaseMs);
    await stopping;
    store.heal();
    await clock.advance(leaseMs);
    const { jobs } = await survivor.list();
    assert.ok(
      jobs.some(({ crashes }) => crashes === 1),
      `started: ${starts.join(", ")}`,
    );
  });
});
