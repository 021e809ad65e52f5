import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { NewJob } from "../../src/store/jobs.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

const minute = 60_000;
const spec = '{"every":"10s"}';

/** As something else than this library, or a newer version of it, would write: past the client. */
async function past(factory: StoreFactory, clock: VirtualClock, write: (store: Store) => Promise<unknown>) {
  const store = await factory.open({ namespace: "default", clock, log: silentLogger });
  await write(store);
  await store.close();
}

function newJob(id: string, changes: Partial<NewJob> = {}): NewJob {
  const limits = {
    unique: null,
    debounce: null,
    concurrencyKey: null,
    rateKey: null,
    expireInMs: null,
    retention: null,
  };
  const place = { relayed: false, slot: 1, schedule: null, fireAt: null, runAt: null, delayMs: 0 };
  const rules = { delivery: "at-least-once", priority: 0, attempts: 3, maxCrashes: 3 } as const;
  const after = { after: [], afterFailure: "cancel" } as const;
  return {
    id,
    name: "work",
    queue: "default",
    input: "1",
    tags: [],
    ...rules,
    ...limits,
    ...place,
    ...after,
    ...changes,
  };
}

async function putBroken(store: Store, key: string, columns: { spec: string; job: string }, at: number) {
  const when = { paused: false, nextAt: new Date(at), ifVersion: null, ifNextAt: null };
  await store.putSchedule({ key, ...columns, ...when, skipped: [], node: "n" });
}

/** A store that takes no batch in which the schedule `refused` fires. */
function refusing(factory: StoreFactory): StoreFactory {
  return {
    async open(context) {
      const store = await factory.open(context);
      const fire: Store["fire"] = async (params) => {
        if (params.fires.some(({ key }) => key === "refused")) throw new TypeError("this cannot be written");
        return store.fire(params);
      };
      return new Proxy(store, {
        get(_, key) {
          if (key === "fire") return fire;
          const value: unknown = Reflect.get(store, key, store);
          return typeof value === "function" ? value.bind(store) : value;
        },
      });
    },
  };
}

onEveryStore("rows that cannot be read", (bed) => {
  const fresh = async (wrap: (factory: StoreFactory) => StoreFactory = (factory) => factory) => {
    const [clock, store] = [new VirtualClock(), wrap(bed.store())];
    const ran: string[] = [];
    const work = defineJob<unknown>({ name: "work", run: ({ job }) => void ran.push(job.id) });
    const app = new TestEscapement({ store, jobs: [work], log: silentLogger }, clock);
    const errors: string[] = [];
    app.on("error", ({ during }) => errors.push(during));
    await app.migrate();
    return { app, clock, store, ran, errors };
  };

  test("a schedule that cannot be read keeps no other back, and is told of once a minute", async () => {
    const { app, clock, store, ran, errors } = await fresh();
    const template = JSON.stringify({ name: "work", queue: "default" });
    const broken = [
      { spec: "{", job: template },
      { spec: "5", job: template },
      { spec: '{"cron":"nonsense"}', job: template },
      { spec, job: "{" },
      { spec, job: "5" },
      { spec, job: template },
    ];
    await past(store, clock, async (handle) => {
      for (const [place, columns] of broken.entries())
        await putBroken(handle, `broken-${place}`, columns, clock.now());
    });
    await app.schedule("healthy", { every: "10s" }, "work", 1);
    await app.start();
    await app.advance(2.5 * minute);
    assert.equal(ran.length, 15);
    for (const place of broken.keys()) {
      const told = errors.filter((during) => during === `planning schedule "broken-${place}"`);
      assert.equal(told.length, 3, `broken-${place}`);
    }
    const listed = await app.schedules();
    assert.equal(listed.length, broken.length + 1);
    for (const { key, unreadable } of listed) assert.equal(unreadable === undefined, key === "healthy", key);
    assert.match(
      (await app.explain("broken-4@2020-01-01T00:00:00Z")).join(),
      /cannot be planned: unreadable: job/,
    );
    await app[Symbol.asyncDispose]();
  });

  test("a schedule that cannot be read is mended by putting it again", async () => {
    const { app, clock, store, ran } = await fresh();
    await past(store, clock, (handle) => putBroken(handle, "s", { spec: "{", job: "{" }, clock.now()));
    await app.start();
    assert.equal(await app.schedule("s", { every: "10s" }, "work", 1), "changed");
    await app.advance(minute);
    assert.equal(ran.length, 6);
    assert.equal((await app.getSchedule("s"))?.unreadable, undefined);
    await app[Symbol.asyncDispose]();
  });

  test("more unreadable schedules than one trip looks at starve no other", async () => {
    const { app, clock, store, ran } = await fresh();
    await past(store, clock, async (handle) => {
      const keys = Array.from({ length: 1_050 }, (_, place) => `broken-${place}`);
      for (let from = 0; from < keys.length; from += 50)
        await Promise.all(
          keys.slice(from, from + 50).map((key) => putBroken(handle, key, { spec, job: "{" }, clock.now())),
        );
    });
    await app.schedule("healthy", { every: "10s" }, "work", 1);
    await app.start();
    await app.advance(minute);
    assert.equal(ran.length, 6);
    await app[Symbol.asyncDispose]();
  });

  test("a schedule whose firing the store refuses keeps no other back", async () => {
    const { app, ran, errors } = await fresh(refusing);
    await app.schedule("healthy", { every: "10s" }, "work", 1);
    await app.schedule("refused", { every: "10s" }, "work", 1);
    await app.start();
    await app.advance(minute);
    assert.equal(ran.length, 6);
    assert.deepEqual(errors, ['planning schedule "refused"']);
    await app[Symbol.asyncDispose]();
  });

  test("a field that is no JSON is left out of its job, which is listed with all others", async () => {
    const { app, clock, store } = await fresh();
    await past(store, clock, async (handle) => {
      await handle.enqueue({ jobs: [newJob("input", { input: "{" }), newJob("rest"), newJob("whole")] });
      const names = [{ name: "work", concurrency: null, rate: null }];
      const ask = { claimer: "c", leaseMs: minute, limit: 3, queues: null, names, alone: false };
      const { jobs } = await handle.claim({ ...ask, sequence: 1 });
      assert.equal(jobs.length, 3);
      const reports = [{ id: "rest", token: 1, progress: "{", lines: [] }];
      await handle.report({ claimer: "c", reports });
      const retry = { kind: "retry", delayMs: 0, error: "[" } as const;
      await handle.finish({ claimer: "c", finishes: [{ id: "rest", token: 1, outcome: retry }] });
      const again = await handle.claim({ ...ask, sequence: 2 });
      assert.equal(again.jobs.length, 1);
      const succeed = { kind: "succeed", result: "{" } as const;
      await handle.finish({ claimer: "c", finishes: [{ id: "rest", token: 2, outcome: succeed }] });
    });
    const { jobs } = await app.list({}, { order: "oldest" });
    assert.deepEqual(
      jobs.map(({ id, unreadable }) => [id, unreadable]),
      [
        ["input", ["input"]],
        ["rest", ["result", "error", "progress"]],
        ["whole", undefined],
      ],
    );
    assert.deepEqual([jobs[0]?.input, jobs[1]?.result, jobs[1]?.error], [null, null, null]);
    assert.match((await app.trail("rest"))[0]?.error?.message ?? "", /cannot be read/);
    assert.match((await app.explain("rest")).join("\n"), /unreadable: result, error, progress/);
    await assert.rejects(app.result("rest"), { code: "unreadable-row" });
    await app[Symbol.asyncDispose]();
  });
});

test("schedules that cannot be read are one series of the metrics, however many they are", async () => {
  const [clock, store] = [new VirtualClock(), memory()];
  const app = new TestEscapement({ store, metrics: true, log: silentLogger }, clock);
  await past(store, clock, async (handle) => {
    for (const key of ["a", "b"]) await putBroken(handle, key, { spec, job: "{" }, clock.now());
  });
  await app.start();
  await app.advance(1_000);
  const lines = (await app.metrics())
    .split("\n")
    .filter((line) => line.startsWith("escapement_errors_total{"));
  assert.deepEqual(lines, ['escapement_errors_total{during="planning schedule"} 2']);
  await app[Symbol.asyncDispose]();
});
