import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Counter, Registry } from "prom-client";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { scratchFolder } from "../scratch.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, ambiguous, refused, ScriptedTransport } from "./scripted-transport.ts";

/** The value of a line of the text form. */
function reading(text: string, line: string): number | null {
  const found = text.split("\n").find((one) => one.startsWith(`${line} `));
  return found === undefined ? null : Number(found.slice(line.length + 1));
}

test("rollbacks, their failures, phases, lateness, lag and coverage are counted [D3, D4, D5, B7]", async () => {
  const clock = new VirtualClock();
  const store = new FaultyStore(memory());
  const broker = new ScriptedTransport(clock);
  broker.reply = ({ body }, arrival) => {
    if (arrival > 1) return acknowledged;
    return body === "1" ? refused() : ambiguous;
  };
  broker.delayMs = 500;
  const job = defineJob<number>({ name: "pay", route: broker.route({ dispatchTimeoutMs: 20_000 }) });
  const relay = { partitions: 2, canary: 10_000 };
  await using app = new TestEscapement(
    { store, jobs: [job], relay, metrics: true, log: silentLogger },
    clock,
  );
  await app.start({ roles: ["relay"] });
  await app.enqueue(job, 1);
  await clock.advance(5_000);
  await app.enqueue(job, 2, { id: "x" });
  await clock.advance(100);
  assert.equal(reading(await app.metrics(), "escapement_relay_in_flight"), 1);
  store.fail("refuse", ["checkpoint"]);
  await clock.advance(10_000);
  const stuck = await app.metrics();
  assert.ok((reading(stuck, "escapement_relay_checkpoint_lag_seconds") ?? 0) >= 10);
  store.heal();
  await clock.advance(20_000);
  const text = await app.metrics();
  assert.equal(reading(text, 'escapement_dispatch_rollback_total{name="pay",why="refused"}'), 1);
  assert.equal(reading(text, 'escapement_dispatch_rollback_total{name="pay",why="ambiguous"}'), 1);
  assert.equal(reading(text, 'escapement_dispatch_rollback_failed_total{name="pay"}'), 1);
  assert.equal(reading(text, 'escapement_dispatch_retry_total{phase="publish"}'), 2);
  assert.equal(reading(text, 'escapement_dispatch_retry_total{phase="rollback_write"}'), 1);
  assert.equal(reading(text, 'escapement_published_total{name="pay",transport="scripted"}'), 2);
  assert.equal(reading(text, 'escapement_dispatch_delay_seconds_count{name="pay"}'), 2);
  assert.equal(reading(text, "escapement_relay_partitions_held"), 2);
  assert.equal(reading(text, "escapement_relay_partitions"), 2);
  assert.equal(reading(text, "escapement_relay_checkpoint_lag_seconds"), 0);
  assert.ok((reading(text, "escapement_canary_delay_seconds_count") ?? 0) >= 2, "the canary sings");
  assert.ok((reading(text, "escapement_canary_last_seconds") ?? 0) > 0);
});

test("what local workers do is counted too, and a port answers /metrics [B7]", async () => {
  const job = defineJob<null>({ name: "work", run: () => "done" });
  await using app = createEscapement({
    store: memory(),
    jobs: [job],
    metrics: { port: 0 },
    log: silentLogger,
  });
  await app.start();
  const { id } = await app.enqueue(job, null);
  await app.result(id);
  const address = `http://127.0.0.1:${app.metricsPort}`;
  const answer = await fetch(`${address}/metrics`);
  const text = await answer.text();
  assert.match(answer.headers.get("content-type") ?? "", /text\/plain/);
  assert.equal(
    reading(
      text,
      'escapement_jobs_total{name="work",queue="default",delivery="at-least-once",outcome="succeeded"}',
    ),
    1,
  );
  assert.equal(
    reading(
      text,
      'escapement_start_delay_seconds_count{name="work",queue="default",delivery="at-least-once"}',
    ),
    1,
  );
  assert.equal(
    reading(text, "escapement_relay_partitions"),
    null,
    "a process without a relay says nothing of one",
  );
  assert.equal((await fetch(`${address}/other`)).status, 404);
});

test("an app that counts nothing says so", async () => {
  await using app = createEscapement({ store: memory(), log: silentLogger });
  await assert.rejects(app.metrics(), { code: "metrics-off" });
});

test("a start that fails leaves its port free: the next one fails for its own reason", async () => {
  const blocker = createServer().listen(0, "127.0.0.1");
  await once(blocker, "listening");
  const { port } = blocker.address() as AddressInfo;
  blocker.close();
  await once(blocker, "close");
  const job = defineJob<null>({ name: "once", delivery: "at-most-once", run: () => {} });
  await using app = createEscapement({
    store: sqlite({ path: join(scratchFolder("metrics"), "jobs.db"), durability: "normal" }),
    jobs: [job],
    metrics: { port },
    log: silentLogger,
  });
  for (let tries = 0; tries < 2; tries++) await assert.rejects(app.start(), { code: "weak-durability" });
  assert.equal(app.metricsPort, null);
});

const ofMail = 'name="work",queue="mail",delivery="at-least-once"';

test("how long handlers took is counted for those that failed, too, by queue and delivery", async () => {
  const clock = new VirtualClock();
  const job = defineJob<null>({
    name: "work",
    queue: "mail",
    retry: { attempts: 2, backoff: { delay: "1s", jitter: 0 } },
    run: async () => {
      await new Promise<void>((resolve) => clock.after(2_000, resolve));
      throw new Error("no");
    },
  });
  await using app = new TestEscapement(
    { store: memory(), jobs: [job], metrics: true, log: silentLogger },
    clock,
  );
  await app.start();
  await app.enqueue(job, null);
  await app.advance("10s");
  const text = await app.metrics();
  for (const outcome of ["failed", "dead"]) {
    const seconds = reading(text, `escapement_run_seconds_sum{${ofMail},outcome="${outcome}"}`) ?? 0;
    assert.ok(seconds >= 2 && seconds < 2.5, `${outcome}: ${seconds}`);
    assert.equal(reading(text, `escapement_jobs_total{${ofMail},outcome="${outcome}"}`), 1);
  }
});

test("how much queues have to do is asked of the store by one node of all, and by the next when that has gone", async () => {
  const clock = new VirtualClock();
  const store = memory();
  let asked = 0;
  const counting: StoreFactory = {
    open: async (context) => {
      const opened = await store.open(context);
      const depths = opened.depths.bind(opened);
      opened.depths = () => {
        asked += 1;
        return depths();
      };
      return opened;
    },
  };
  const job = defineJob<null>({ name: "work", queue: "mail" });
  const options = { store: counting, jobs: [job], log: silentLogger };
  const apps = [1, 2, 3].map(() => new TestEscapement({ ...options, metrics: { interval: "10s" } }, clock));
  // One that counts nothing, and whose id may be the smallest, takes nobody's turn.
  await using silent = new TestEscapement(options, clock);
  for (const app of [silent, ...apps]) await app.start();
  await silent.enqueueMany(job, [{ input: null }, { input: null }, { input: null, delay: "1d" }]);
  const depth = async (): Promise<(number | null)[]> =>
    Promise.all(
      apps.map(async (app) =>
        reading(await app.metrics(), 'escapement_queue_jobs{queue="mail",state="due"}'),
      ),
    );
  // Each looks at its start, when those that come later are not there yet.
  await clock.advance(11_000);
  assert.deepEqual(
    (await depth()).filter((due) => due !== null),
    [2],
  );
  asked = 0;
  await clock.advance(30_000);
  assert.equal(asked, 3);
  const first = apps[(await depth()).findIndex((due) => due !== null)];
  assert.ok(first !== undefined);
  const text = await first.metrics();
  assert.equal(reading(text, 'escapement_queue_jobs{queue="mail",state="later"}'), 1);
  const age = reading(text, 'escapement_queue_oldest_due_seconds{queue="mail"}') ?? 0;
  assert.ok(age >= 30 && age <= 42, `${age} s`);
  await first[Symbol.asyncDispose]();
  await clock.advance(11_000);
  const left = apps.filter((app) => app !== first);
  const shown = await Promise.all(
    left.map(async (app) => reading(await app.metrics(), 'escapement_queue_jobs{queue="mail",state="due"}')),
  );
  assert.deepEqual(
    shown.filter((due) => due !== null),
    [2],
  );
  for (const app of left) await app[Symbol.asyncDispose]();
});

test("the user's own registry has the figures of the app among its own, and takes one app", async () => {
  const registry = new Registry();
  new Counter({ name: "mine", help: "of the user", registers: [registry] }).inc();
  const options = { store: memory(), metrics: { registry }, log: silentLogger };
  await using app = createEscapement(options);
  const text = await app.metrics();
  assert.match(text, /^mine 1$/m);
  assert.match(text, /^# HELP escapement_jobs_total/m);
  assert.equal(text, await registry.metrics());
  await using second = createEscapement(options);
  await assert.rejects(second.metrics(), { code: "metrics-unavailable" });
  const wrong = {} as Registry;
  assert.throws(() => createEscapement({ store: memory(), metrics: { registry: wrong } }), {
    code: "invalid-option",
  });
});
