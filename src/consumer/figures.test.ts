import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createEscapement } from "../app/create.ts";
import { defineJob } from "../definition.ts";
import { silentLogger } from "../log.ts";
import { memory } from "../stores/memory/index.ts";
import { until } from "../testing/transports/scene.ts";
import { http } from "../transports/http/index.ts";
import { secret } from "../transports/http/test/place.ts";
import { httpEndpoint } from "./index.ts";
import { newReceived } from "./test/memory-source.ts";
import { newInbox, stage } from "./test/stage.ts";

/** The value of a line of the text form. */
function reading(text: string, line: string): number | null {
  const found = text.split("\n").find((one) => one.startsWith(`${line} `));
  return found === undefined ? null : Number(found.slice(line.length + 1));
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const about = (seconds: number | null, expected: number): void =>
  assert(
    seconds !== null && seconds >= expected && seconds < expected + 5,
    `expected about ${expected} s, got ${seconds}`,
  );

test("a consumer measures the wait in the broker, the start and the whole lateness, and counts attempts by outcome [B7]", async () => {
  let tries = 0;
  const job = defineJob<string>({
    name: "work",
    retry: { attempts: 2, backoff: { delay: 1 } },
    run: ({ input }) => {
      tries += 1;
      if (input === "fails once" && tries === 1) throw new Error("not yet");
    },
  });
  await using scene = await stage({ jobs: [job], metrics: { port: 0 } });
  const { source, consumer } = scene;
  const times = { "escapement-fire-at": ago(60_000), "escapement-published-at": ago(20_000) };
  await source.send(newReceived("work", "fails once", times));
  await until("it is handled", () => source.acked.length === 1);
  const text = await (await fetch(`http://127.0.0.1:${consumer.metricsPort}/metrics`)).text();
  assert.equal(text, await consumer.metrics());
  about(reading(text, 'escapement_consumer_queue_wait_seconds_sum{name="work"}'), 20);
  about(reading(text, 'escapement_consumer_lateness_seconds_sum{name="work"}'), 60);
  about(reading(text, 'escapement_consumer_start_seconds_sum{name="work"}'), 0);
  for (const figure of ["queue_wait", "lateness", "start"])
    assert.equal(reading(text, `escapement_consumer_${figure}_seconds_count{name="work"}`), 1, figure);
  assert.equal(reading(text, 'escapement_consumer_run_seconds_count{name="work"}'), 2);
  assert.equal(reading(text, 'escapement_consumed_total{name="work",outcome="failed"}'), 1);
  assert.equal(reading(text, 'escapement_consumed_total{name="work",outcome="handled"}'), 1);
});

test("a clock that is behind makes no figure less than zero; a message that does not tell when it was published has no queue wait", async () => {
  const job = defineJob<null>({ name: "work", run: () => {} });
  await using scene = await stage({ jobs: [job], metrics: true });
  const { source, consumer } = scene;
  const ahead = { "escapement-fire-at": ago(-60_000), "escapement-published-at": ago(-60_000) };
  await source.send(newReceived("work", null, ahead));
  await source.send(newReceived("work", null));
  await source.send(newReceived("work", null, { "escapement-published-at": "yesterday" }));
  await until("all are handled", () => source.acked.length === 3);
  const text = await consumer.metrics();
  assert.equal(reading(text, 'escapement_consumer_queue_wait_seconds_count{name="work"}'), 1);
  assert.equal(reading(text, 'escapement_consumer_queue_wait_seconds_sum{name="work"}'), 0);
  assert.equal(reading(text, 'escapement_consumer_lateness_seconds_count{name="work"}'), 3);
  assert.equal(consumer.metricsPort, null);
});

test("what a relay publishes tells when, and an endpoint measures it [B7]", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const job = defineJob<null>({
    name: "work",
    route: http({ url, secret, allow: ["127.0.0.1"] }),
    run: () => {},
  });
  const { inbox } = newInbox();
  const endpoint = httpEndpoint({ jobs: [job], inbox, secret, metrics: true, log: silentLogger });
  let publishedAt = Number.NaN;
  server.on("request", (request, response) => {
    publishedAt = Date.parse(String(request.headers["escapement-published-at"]));
    // What lies between the two is the queue wait.
    setTimeout(() => endpoint(request, response), 300);
  });
  await using app = createEscapement({ store: memory(), jobs: [job], log: silentLogger });
  await app.start();
  const before = Date.now();
  const { id } = await app.enqueue(job, null);
  await until("it is delivered", async () => (await app.get(id))?.state === "succeeded");
  assert(publishedAt >= before - 1 && publishedAt <= Date.now(), `published at ${publishedAt}`);
  const text = await endpoint.metrics();
  const waited = reading(text, 'escapement_consumer_queue_wait_seconds_sum{name="work"}') ?? 0;
  const atMost = (Date.now() - before) / 1_000;
  assert(waited >= 0.29 && waited <= atMost, `waited ${waited} s of ${atMost} s`);
  assert.equal(reading(text, 'escapement_consumed_total{name="work",outcome="handled"}'), 1);
  await app.stop();
  await endpoint.stop();
  server.closeAllConnections();
  server.close();
  await inbox.close();
});

test("a consumer and an endpoint that count nothing say so", async () => {
  const job = defineJob<null>({ name: "work", run: () => {} });
  await using scene = await stage({ jobs: [job] });
  await assert.rejects(scene.consumer.metrics(), { code: "metrics-off" });
  const endpoint = httpEndpoint({ jobs: [job], inbox: scene.inbox, secret });
  await assert.rejects(endpoint.metrics(), { code: "metrics-off" });
});
