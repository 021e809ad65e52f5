import assert from "node:assert/strict";
import { test } from "node:test";
import { createEscapement, defineJob, type Probe } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

const job = defineJob<null>({ name: "work", run: () => {} });

const detailOf = (probe: Probe, name: string): string | undefined =>
  probe.checks.find((check) => check.name === name)?.detail;

onEveryStore("probes", (bed) => {
  test("an app that claims is alive and ready, and one that is not started is not ready", async () => {
    const idle = createEscapement({ store: bed.store(), jobs: [job], log: silentLogger });
    assert.deepEqual(idle.readiness(), {
      ok: false,
      checks: [{ name: "app", ok: false, detail: "it is not started" }],
    });
    assert.equal((await idle.liveness()).ok, true);
    await idle.start();
    await until("it claims", () => idle.readiness().ok);
    assert.match(detailOf(idle.readiness(), "claims") ?? "", /^the last claim was answered/);
    const alive = await idle.liveness();
    assert.equal(alive.ok, true);
    assert.deepEqual(
      alive.checks.map(({ name }) => name),
      ["loop", "store"],
    );
    await idle.stop();
    assert.match(detailOf(idle.readiness(), "app") ?? "", /stopping/);
  });
});

test("a store that fails makes an app neither alive nor ready, with the reason and no address, until it answers again", async () => {
  const clock = new VirtualClock();
  const store = new FaultyStore(memory());
  await using app = new TestEscapement({ store, jobs: [job], log: silentLogger }, clock);
  await app.start();
  await clock.advance(2_000);
  assert.equal(app.readiness().ok, true);
  store.fail("refuse", ["step", "queues"]);
  await clock.advance(10_000);
  const ready = app.readiness();
  assert.equal(ready.ok, false);
  assert.match(detailOf(ready, "claims") ?? "", /^the store failed the last \d+ claims?: store-unavailable$/);
  const alive = await app.liveness();
  assert.equal(alive.ok, false);
  assert.equal(detailOf(alive, "store"), "it does not answer: store-unavailable");
  store.heal();
  await clock.advance(10_000);
  assert.equal(app.readiness().ok, true);
  assert.equal((await app.liveness()).ok, true);
});

test("a store that hangs makes an app neither alive nor ready", async () => {
  const clock = new VirtualClock();
  const inner = memory();
  let isHanging = false;
  const store = {
    open: async (context: Parameters<typeof inner.open>[0]) => {
      const opened = await inner.open(context);
      const { step, queues } = opened;
      const hangs = new Promise<never>(() => {});
      opened.step = (params) => (isHanging ? hangs : step.call(opened, params));
      opened.queues = () => (isHanging ? hangs : queues.call(opened));
      return opened;
    },
  };
  const app = new TestEscapement({ store, jobs: [job], log: silentLogger }, clock);
  await app.start();
  await clock.advance(2_000);
  isHanging = true;
  await clock.advance(30_000);
  assert.match(detailOf(app.readiness(), "claims") ?? "", /answered (2|3)\d\.\d s ago/);
  assert.equal(app.readiness().ok, false);
  const asked = app.liveness();
  await clock.advance(6_000);
  assert.equal((await asked).ok, false);
  assert.equal(detailOf(await asked, "store"), "it has not answered for 5.0 s");
});

test("an app whose slots are all busy makes no claims, and is ready", async () => {
  const go = Promise.withResolvers<void>();
  const clock = new VirtualClock();
  const slow = defineJob<null>({ name: "slow", run: () => go.promise });
  await using app = new TestEscapement(
    { store: memory(), jobs: [slow], concurrency: 1, log: silentLogger },
    clock,
  );
  await app.start();
  await app.enqueue(slow, null);
  await clock.advance(60_000);
  assert.deepEqual(app.readiness(), {
    ok: true,
    checks: [{ name: "claims", ok: true, detail: "all handler slots (1) are busy" }],
  });
  go.resolve();
});

test("a relay is ready once it holds partitions", async () => {
  const clock = new VirtualClock();
  const broker = new ScriptedTransport(clock);
  const routed = defineJob<number>({ name: "pay", route: broker.route({}) });
  await using app = new TestEscapement({ store: memory(), jobs: [routed], log: silentLogger }, clock);
  await app.start({ roles: ["relay"] });
  await clock.advance(5_000);
  assert.deepEqual(app.readiness(), {
    ok: true,
    checks: [{ name: "relay", ok: true, detail: "it holds 16 of 16 partitions, which 1 relays share" }],
  });
});

test("the port of the metrics answers /healthz and /readyz", async () => {
  const store = new FaultyStore(memory());
  await using app = createEscapement({ store, jobs: [job], metrics: { port: 0 }, log: silentLogger });
  await app.start();
  const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${app.metricsPort}${path}`);
  await until("it is ready", async () => (await ask("/readyz")).status === 200);
  const alive = await ask("/healthz");
  assert.equal(alive.status, 200);
  assert.match(alive.headers.get("content-type") ?? "", /json/);
  assert.equal(((await alive.json()) as Probe).ok, true);
  store.fail("refuse", ["step", "queues"]);
  await until("it is not ready", async () => (await ask("/readyz")).status === 503);
  await until("it is not alive", async () => (await ask("/healthz")).status === 503);
  store.heal();
});
