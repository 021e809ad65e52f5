import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
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

test("D3, D4, D5, B7: rollbacks, their failures, phases, lateness, lag and coverage are counted", async () => {
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

test("B7: what local workers do is counted too, and a port answers /metrics", async () => {
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
  assert.equal(reading(text, 'escapement_jobs_total{name="work",outcome="succeeded"}'), 1);
  assert.equal(reading(text, 'escapement_start_delay_seconds_count{name="work"}'), 1);
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
