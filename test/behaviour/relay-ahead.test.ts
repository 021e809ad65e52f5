import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyDefinition, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { EscapementOptions } from "../../src/settings.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const leaseMs = 30_000;
const second = 1_000;
/** Named by then, and not due. */
const justBefore = second - 100;

onEveryStore("named ahead of its time", (bed) => {
  function scene() {
    const clock = new VirtualClock();
    const store = bed.store();
    const broker = new ScriptedTransport(clock);
    const start = async (jobs: readonly AnyDefinition[], options: EscapementOptions = {}) => {
      const settings = { store, jobs, relay: { partitions: 1 }, log: silentLogger, ...options };
      const app = new TestEscapement(settings, clock);
      app.on("error", () => {});
      await app.start({ roles: ["relay"] });
      await clock.advance(0);
      return app;
    };
    return { clock, broker, start };
  }

  test("a job is named before its time, and published at it [B7]", async () => {
    const { clock, broker, start } = scene();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const app = await start([job]);
    const [at, since] = [new Date(clock.now() + second), clock.now()];
    await app.enqueueMany(job, [
      { input: null, id: "a", runAt: at },
      { input: null, id: "b", runAt: new Date(at.getTime() + 3) },
    ]);
    await clock.advance(justBefore);
    assert.equal((await app.get("a"))?.state, "active");
    assert.deepEqual(broker.ids, []);
    await clock.advance(second);
    assert.deepEqual(broker.ids, ["a", "b"]);
    const late = broker.arrivals.map((arrival, n) => arrival.at - since - second - n * 3);
    assert(
      late.every((ms) => ms >= 0 && ms <= 20),
      `${late} ms after the time of each`,
    );
    await app[Symbol.asyncDispose]();
  });

  test("at-most-once is named at its time, so that a death before it costs nothing", async () => {
    const { clock, broker, start } = scene();
    const job = defineJob<null>({ name: "pay", delivery: "at-most-once", route: broker.route() });
    const app = await start([job], { acceptWeakDurability: true });
    await app.enqueue(job, null, { id: "a", delay: second });
    await clock.advance(justBefore);
    assert.equal((await app.get("a"))?.state, "waiting");
    await clock.advance(second);
    assert.deepEqual(broker.ids, ["a"]);
    await app[Symbol.asyncDispose]();
  });

  test("a cancel between the two keeps it from being published", async () => {
    const { clock, broker, start } = scene();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const app = await start([job]);
    await app.enqueue(job, null, { id: "a", delay: second });
    await clock.advance(justBefore);
    await app.cancel("a");
    await clock.advance(second);
    assert.deepEqual([broker.ids, (await app.get("a"))?.state], [[], "cancelled"]);
    await app[Symbol.asyncDispose]();
  });

  test("a pause of its queue between the two holds it, and a resume lets it go", async () => {
    const { clock, broker, start } = scene();
    const job = defineJob<null>({ name: "pay", queue: "payments", route: broker.route() });
    const app = await start([job]);
    await app.enqueue(job, null, { id: "a", delay: second });
    await clock.advance(justBefore);
    await app.pauseQueue("payments");
    await clock.advance(10 * second);
    assert.deepEqual([broker.ids, (await app.get("a"))?.state], [[], "waiting"]);
    await app.resumeQueue("payments");
    await clock.advance(10 * second);
    const done = await app.get("a");
    assert.deepEqual([broker.ids, done?.state, done?.attempt], [["a"], "succeeded", 1]);
    await app[Symbol.asyncDispose]();
  });

  test("whoever takes over publishes it at its time, neither before nor much after [B7]", async () => {
    const { clock, broker, start } = scene();
    const job = defineJob<null>({ name: "pay", route: broker.route() });
    const first = await start([job]);
    const at = clock.now() + leaseMs + 10 * second;
    await first.enqueue(job, null, { id: "a", runAt: new Date(at) });
    await clock.advance(at - clock.now() - 100);
    assert.equal((await first.get("a"))?.state, "active");
    const stopping = first.stop();
    await clock.advance(0);
    await stopping;
    assert.equal(broker.ids.length, 0, "a stop gives back what is not due");
    const heir = await start([job]);
    assert.equal(clock.now(), at - 100);
    await clock.advance(99);
    assert.equal(broker.ids.length, 0);
    await clock.advance(2 * second);
    assert.deepEqual(broker.ids, ["a"]);
    await heir[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
  });
});
