import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, beforeEach, test } from "node:test";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { consume, httpEndpoint } from "../../src/consumer/index.ts";
import { newInbox } from "../../src/consumer/test/stage.ts";
import { type AnyDefinition, createEscapement, defineJob, type Job, Operations } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { openTelemetry } from "../../src/opentelemetry/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createTestEscapement } from "../../src/testing/kit.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { http } from "../../src/transports/http/index.ts";
import { secret } from "../../src/transports/http/test/place.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { onEveryStore } from "./stores.ts";

// Before any test: while a server starts, the tests so far may all have ended, and with them the context manager.
const redisServer = await testbed.redis();
const natsServer = await testbed.nats();
const kafkaServer = await testbed.kafka();

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const tracer = provider.getTracer("test");
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const telemetry = openTelemetry({ tracer, meter: false });
after(() => context.disable());
beforeEach(() => exporter.reset());

/** Runs within a span of its own, as a web server's handler does. */
function asCaller<T>(fn: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan("caller", async (span) => {
    try {
      return await fn();
    } finally {
      span.end();
    }
  });
}

const spans = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);
const only = (name: string): ReadableSpan => {
  const found = spans(name);
  assert.equal(found.length, 1, `${name}: ${exporter.getFinishedSpans().map((span) => span.name)}`);
  return found[0] as ReadableSpan;
};
const idOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId;
const traceIdOf = (span: ReadableSpan): string => span.spanContext().traceId;
const isChild = (child: ReadableSpan, parent: ReadableSpan): void => {
  assert.equal(child.parentSpanContext?.spanId, idOf(parent), `${child.name} below ${parent.name}`);
  assert.equal(traceIdOf(child), traceIdOf(parent));
};

onEveryStore("traces", (bed) => {
  test("a trace goes from the caller through the store to the handler, and on to what that enqueues", async () => {
    const second = defineJob<null>({ name: "second", queue: "q2", run: () => {} });
    const first = defineJob<null>({
      name: "first",
      queue: "q1",
      run: async ({ enqueue, job }) => {
        await enqueue(second, null);
        return { tags: job.tags, trace: job.trace };
      },
    });
    const events: Job["tags"][] = [];
    await using app = await bed.app({ jobs: [first, second], telemetry, log: silentLogger });
    app.on("succeeded", ({ job }) => events.push(job.tags));
    const { id } = await asCaller(() => app.enqueue(first, null, { tags: ["mine"] }));
    await app.advance("5s");
    await until("all has ended", async () => (await app.count({ states: ["succeeded"] })) === 2);
    const [caller, enqueue1, process1, enqueue2, process2] = [
      ...["caller", "enqueue q1", "process q1", "enqueue q2", "process q2"].map(only),
    ] as [ReadableSpan, ReadableSpan, ReadableSpan, ReadableSpan, ReadableSpan];
    isChild(enqueue1, caller);
    isChild(process1, enqueue1);
    isChild(enqueue2, process1);
    isChild(process2, enqueue2);
    assert.deepEqual([enqueue1.kind, process1.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER]);
    assert.equal(process1.attributes["messaging.message.id"], id);
    assert.equal(process1.attributes["messaging.system"], "escapement");
    assert.equal(enqueue1.attributes["messaging.message.id"], id);
    // It is kept with the job, and is no tag of it for anybody.
    const kept = (await app.get(id)) as Job<unknown, { tags: string[] }>;
    assert.equal(kept.trace?.traceparent, `00-${traceIdOf(enqueue1)}-${idOf(enqueue1)}-01`);
    assert.deepEqual([kept.tags, kept.result?.tags], [["mine"], ["mine"]]);
    assert.deepEqual(events.toSorted(), [[], ["mine"]]);
    const { jobs } = await new Operations(app).jobs({ text: traceIdOf(caller) });
    assert.deepEqual(jobs.map(({ tags }) => tags).toSorted(), [[], ["mine"]]);
  });
});

test("a retry and a redrive begin a trace of their own, with a link to the enqueue", async () => {
  let tries = 0;
  const job = defineJob<null>({
    name: "flaky",
    retry: { attempts: 2, backoff: { delay: "1s" } },
    run: () => {
      tries += 1;
      if (tries < 3) throw new RangeError("not yet");
    },
  });
  await using app = await createTestEscapement({ jobs: [job], telemetry, log: silentLogger });
  const { id } = await app.enqueue(job, null);
  await app.advance("10s");
  assert.equal((await app.get(id))?.state, "dead");
  await app.redrive(id);
  await app.advance("10s");
  const enqueued = only("enqueue default");
  const [first, retry, redriven] = spans("process default");
  assert.ok(first !== undefined && retry !== undefined && redriven !== undefined);
  isChild(first, enqueued);
  assert.equal(first.status.code, SpanStatusCode.ERROR);
  assert.equal(first.attributes["error.type"], "RangeError");
  for (const later of [retry, redriven]) {
    assert.equal(later.parentSpanContext, undefined);
    assert.notEqual(traceIdOf(later), traceIdOf(enqueued));
    assert.deepEqual(
      later.links.map(({ context: { spanId } }) => spanId),
      [idOf(enqueued)],
    );
  }
  assert.equal(redriven.status.code, SpanStatusCode.UNSET);
});

test("an occurrence begins a trace of its own, with a link to its plan, which only the planner that won has told", async () => {
  const job = defineJob<undefined>({ name: "report", run: () => {} });
  const store = memory();
  await using app = await createTestEscapement({ store, jobs: [job], telemetry, log: silentLogger });
  await using other = await createTestEscapement({
    store,
    jobs: [job],
    telemetry,
    log: silentLogger,
    clock: app.clock,
  });
  await asCaller(() => app.schedule("hourly", { every: "1h" }, job));
  const template = await app.schedule("hourly", { every: "1h" }, job);
  assert.equal(template, "unchanged", "the trace of whoever makes a schedule is no part of it");
  await app.advance("61m");
  void other;
  const planned = only("plan default");
  const run = only("process default");
  assert.equal(planned.attributes["escapement.schedule"], "hourly");
  assert.equal(run.parentSpanContext, undefined);
  assert.deepEqual(
    run.links.map(({ context: { spanId } }) => spanId),
    [idOf(planned)],
  );
});

test("what a handler in a thread enqueues belongs to its trace", async () => {
  const threaded = defineJob<{ how: string }>({
    name: "threaded",
    run: new URL("../handlers/work.ts", import.meta.url),
  });
  await using app = createEscapement({ store: memory(), jobs: [threaded], telemetry, log: silentLogger });
  await app.start();
  // The second runs in the thread of the first.
  await app.result(await app.enqueue(threaded, { how: "return" }));
  await app.result(await app.enqueue(threaded, { how: "enqueue" }, { id: "t" }));
  const outer = spans("process default").find(
    (span) => span.attributes["messaging.message.id"] === "t",
  ) as ReadableSpan;
  const inner = spans("enqueue default").find(
    (span) => span.attributes["messaging.message.id"] === "t/1",
  ) as ReadableSpan;
  isChild(inner, outer);
});

test("an enqueue that fails is told as such, and a job without a caller's span has a trace from its enqueue on", async () => {
  const job = defineJob<null>({ name: "work", run: () => {} });
  await using app = await createTestEscapement({ jobs: [job], telemetry, log: silentLogger });
  await assert.rejects(app.enqueue(job, null, { id: "" }), { code: "invalid-id" });
  const failed = only("enqueue default");
  assert.equal(failed.attributes["error.type"], "invalid-id");
  exporter.reset();
  await app.enqueueMany(job, [{ input: null }, { input: null }]);
  await app.runUntilIdle();
  const batch = only("enqueue default");
  assert.equal(batch.attributes["messaging.batch.message_count"], 2);
  assert.equal(spans("process default").length, 2);
  for (const run of spans("process default")) isChild(run, batch);
});

/** The receiver's side of a route: gives the job to its handler, and stops at the end. */
type Receive = (job: AnyDefinition) => Promise<() => Promise<void>>;

function consumerOf(from: Source): Receive {
  return async (job) => {
    const { inbox } = newInbox();
    const options = { jobs: [job], from, inbox, telemetry, onDead: () => {}, log: silentLogger };
    const consumer = consume(options);
    await consumer.start();
    return async () => {
      await consumer.stop();
      await inbox.close();
    };
  };
}

/** From the caller to the receiver's handler: published by a relay that traces, or by one that only passes on. */
async function goesThrough(route: Route, receive: Receive, relayTraces: boolean): Promise<void> {
  exporter.reset();
  const job = defineJob<null>({ name: "payment", queue: "money", route, run: () => {} });
  const stop = await receive(job);
  const store = memory();
  await using client = createEscapement({ store, jobs: [job], telemetry, log: silentLogger });
  await using relay = createEscapement({
    store,
    jobs: [job],
    ...(relayTraces ? { telemetry } : {}),
    log: silentLogger,
  });
  try {
    await relay.start();
    await asCaller(() => client.enqueue(job, null));
    await until("it is handled", () => spans("process money").length > 0);
    await until("the sender knows", async () => (await client.count({ states: ["succeeded"] })) === 1);
  } finally {
    await stop();
  }
  const enqueued = only("enqueue money");
  isChild(enqueued, only("caller"));
  const handled = only("process money");
  assert.equal(traceIdOf(handled), traceIdOf(only("caller")));
  if (relayTraces) {
    const published = only(`publish ${route.destination}`);
    isChild(published, enqueued);
    assert.equal(published.attributes["messaging.system"], route.transport.kind);
    isChild(handled, published);
  } else isChild(handled, enqueued);
}

test("a trace goes on through Redis Streams to a consumer", { skip: redisServer.skip }, async () => {
  const { url } = redisServer;
  for (const relayTraces of [true, false]) {
    const stream = `traces:${randomUUID()}`;
    const source = redisStreamsSource({ stream, group: "g", url });
    await goesThrough(redisStreams({ stream, url }), consumerOf(source), relayTraces);
  }
});

test("a trace goes on through NATS JetStream to a consumer", { skip: natsServer.skip }, async () => {
  const { url } = natsServer;
  const subject = `traces-${randomUUID()}`;
  await using admin = new NatsAdmin(url);
  await makeStream(admin, subject);
  const source = natsSource({ stream: subject, consumer: "c", servers: url });
  await goesThrough(nats({ subject, servers: url }), consumerOf(source), true);
});

test("a trace goes on through Kafka to a consumer", { skip: kafkaServer.skip }, async () => {
  const { url: brokers } = kafkaServer;
  for (const relayTraces of [true, false]) {
    const topic = `traces-${randomUUID()}`;
    await makeTopic(brokers, topic);
    const source = kafkaSource({ topic, group: topic, brokers });
    await goesThrough(kafka({ topic, brokers }), consumerOf(source), relayTraces);
  }
});

test("a trace goes on through HTTP to an endpoint", async () => {
  for (const relayTraces of [true, false]) {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`;
    const receive: Receive = async (job) => {
      const { inbox } = newInbox();
      const endpoint = httpEndpoint({ jobs: [job], inbox, secret, telemetry, log: silentLogger });
      server.on("request", endpoint);
      return async () => {
        await endpoint.stop();
        server.closeAllConnections();
        server.close();
        await inbox.close();
      };
    };
    await goesThrough(http({ url, secret, allow: ["127.0.0.1"] }), receive, relayTraces);
  }
});

test("figures go through the OpenTelemetry API as well, under names that become those of Prometheus", async () => {
  const metricsOf = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: metricsOf, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const job = defineJob<null>({ name: "work", queue: "mail", run: () => {} });
  await using app = await createTestEscapement({
    jobs: [job],
    telemetry: openTelemetry({ tracer, meter: meterProvider.getMeter("test") }),
    log: silentLogger,
  });
  await app.enqueue(job, null);
  await app.enqueue(job, null, { delay: "1d" });
  await app.advance("1m");
  await meterProvider.forceFlush();
  const shown = metricsOf
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics);
  const points = (name: string) => shown.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
  assert.deepEqual(
    points("escapement_jobs").map(({ attributes, value }) => [attributes["outcome"], value]),
    [["succeeded", 1]],
  );
  assert.equal(
    shown.find(({ descriptor }) => descriptor.name === "escapement_start_delay")?.descriptor.unit,
    "s",
  );
  const later = points("escapement_queue_jobs").find(({ attributes }) => attributes["state"] === "later");
  assert.deepEqual([later?.attributes["queue"], later?.value], ["mail", 1]);
  assert.equal(points("messaging.process.duration").length, 1);
  assert.equal(points("messaging.client.operation.duration").length, 1);
  await meterProvider.shutdown();
});

test("without an SDK nothing is kept with jobs", async () => {
  const job = defineJob<null>({ name: "work", run: () => {} });
  const idle = openTelemetry({ tracer: trace.getTracer("nobody") });
  await using app = await createTestEscapement({ jobs: [job], telemetry: idle, log: silentLogger });
  const { id } = await app.enqueue(job, null);
  await app.runUntilIdle();
  const kept = await app.get(id);
  assert.equal(kept?.state, "succeeded");
  assert.equal(kept !== null && "trace" in kept, false);
});
