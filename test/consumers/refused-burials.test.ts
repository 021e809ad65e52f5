import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Producer } from "@platformatic/kafka";
import { Redis } from "ioredis";
import { systemClock } from "../../src/clock.ts";
import { consume } from "../../src/consumer/index.ts";
import { MemorySource, newReceived } from "../../src/consumer/test/memory-source.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { http } from "../../src/transports/http/index.ts";
import { secret } from "../../src/transports/http/test/place.ts";
import { parseKafka } from "../../src/transports/kafka/address.ts";
import { baseOptions } from "../../src/transports/kafka/client.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { kafkaPlace, makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin, natsPlace } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const [natsServer, kafkaServer, redisServer] = [
  await testbed.nats(),
  await testbed.kafka(),
  await testbed.redis(),
];

/** Two are in hand at most, so that two that are stuck would stop everything. */
const inHand = 2;
const tooMany = 3;

async function consumeAll(from: Source, deadLetter: Route) {
  const handled: string[] = [];
  const inbox = createInbox({ store: sqliteInbox(join(scratchFolder("burials"), "inbox.db")) });
  const job = defineJob<string>({
    name: "work",
    retry: { attempts: 1 },
    run: ({ input }) => {
      if (input.startsWith("bad")) throw new Error("e".repeat(1_000));
      handled.push(input);
    },
  });
  const limits = { concurrency: inHand, maxInHand: inHand };
  const consumer = consume({ jobs: [job], from, inbox, deadLetter, log: silentLogger, ...limits });
  await consumer.start();
  const dispose = async (): Promise<void> => {
    await consumer.stop();
    await inbox.close();
  };
  return { consumer, handled, [Symbol.asyncDispose]: dispose };
}

async function publish(route: Route, input: string): Promise<void> {
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  const message = { ...newReceived("work", input), destination: route.destination, dedupeId: randomUUID() };
  const [result] = await transport.publish([message], { timeoutMs: 30_000 });
  assert.equal(result?.kind, "acknowledged", String(result?.kind === "acknowledged" || result?.error));
  await transport.close();
}

/** More of them than can be in hand cannot be put away; what comes after them is handled. */
async function story(from: Source, to: Route, dead: Route, publishLarge: () => Promise<void>): Promise<void> {
  for (let sent = 0; sent < tooMany; sent++) await publishLarge();
  await publish(to, "good");
  await using scene = await consumeAll(from, dead);
  await until("the good one is handled", () => scene.handled.length === 1);
  await until("the others are dropped", () => scene.consumer.counts.unburied === tooMany);
  assert.equal(scene.consumer.counts.dead, 0);
}

/** The largest body with which a route takes a message of ours. */
async function publishLargest(route: Route, limit: number): Promise<void> {
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  let [fits, tooLong] = [limit - 4_000, limit + 1_000];
  const send = async (length: number) => {
    const body = `bad${"x".repeat(length)}`;
    const message = { ...newReceived("work", body), destination: route.destination, dedupeId: randomUUID() };
    const [result] = await transport.publish([message], { timeoutMs: 30_000 });
    return result?.kind === "acknowledged";
  };
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (await send(middle)) fits = middle;
    else tooLong = middle;
  }
  await transport.close();
}

describe("a message that does not fit where dead messages go stops nobody", () => {
  test("NATS", { skip: natsServer.skip }, async () => {
    const { url } = natsServer;
    const [subject, dead] = [`large-${randomUUID()}`, `large-dead-${randomUUID()}`];
    await using admin = new NatsAdmin(url);
    for (const one of [subject, dead]) await makeStream(admin, one);
    const body = "x".repeat(1_048_576);
    const publishLarge = () =>
      admin.do(async (_, connection) => {
        connection.publish(subject, body);
        await connection.flush();
      });
    const route = (name: string) => nats({ subject: name, servers: url });
    await story(
      natsSource({ stream: subject, consumer: "c", servers: url }),
      route(subject),
      route(dead),
      publishLarge,
    );
  });

  test("Kafka", { skip: kafkaServer.skip }, async () => {
    const { url } = kafkaServer;
    const [topic, dead] = [`large-${randomUUID()}`, `large-dead-${randomUUID()}`];
    for (const one of [topic, dead]) await makeTopic(url, one, 1);
    const producer = new Producer(baseOptions(parseKafka(url)));
    const value = Buffer.alloc(1_048_588 - 61 - 20, "x");
    const publishLarge = async () => void (await producer.send({ messages: [{ topic, value } as never] }));
    const route = (name: string) => kafka({ topic: name, brokers: url });
    await story(kafkaSource({ topic, group: topic, brokers: url }), route(topic), route(dead), publishLarge);
    await producer.close();
  });

  test("Redis Streams, and the entries stay in the stream", { skip: redisServer.skip }, async () => {
    const { url } = redisServer;
    const [stream, dead] = [`large-${randomUUID()}`, `large-dead-${randomUUID()}`];
    const redis = new Redis(url);
    const publishLarge = async () => void (await redis.xadd(stream, "*", "body", "x".repeat(10_000)));
    const from = redisStreamsSource({ stream, group: "g", url, deleteHandled: true });
    const letters = redisStreams({ stream: dead, url, maxMessageBytes: 10_000 });
    await story(from, redisStreams({ stream, url }), letters, publishLarge);
    await until("they are acknowledged", async () => (await redis.xpending(stream, "g"))[0] === 0);
    await until("the good one is deleted", async () => (await redis.xlen(stream)) === tooMany);
    redis.disconnect();
  });
});

describe("the largest message that a broker takes, once dead, is put away there", () => {
  test("NATS", { skip: natsServer.skip }, async () => {
    const { url } = natsServer;
    const [subject, dead] = [`large-${randomUUID()}`, `large-dead-${randomUUID()}`];
    await using admin = new NatsAdmin(url);
    for (const one of [subject, dead]) await makeStream(admin, one);
    await publishLargest(nats({ subject, servers: url }), 1_048_576);
    const from = natsSource({ stream: subject, consumer: "c", servers: url });
    await using scene = await consumeAll(from, nats({ subject: dead, servers: url }));
    const { messages } = await admin.do(async (manager) => (await manager.streams.info(subject)).state);
    await until("all are put away", () => scene.consumer.counts.dead === messages);
    const place = natsPlace(url);
    assert.equal((await place.arrived(dead)).length, messages);
    await place.close();
  });

  test("Kafka", { skip: kafkaServer.skip }, async () => {
    const { url } = kafkaServer;
    const [topic, dead] = [`large-${randomUUID()}`, `large-dead-${randomUUID()}`];
    for (const one of [topic, dead]) await makeTopic(url, one, 1);
    await publishLargest(kafka({ topic, brokers: url }), 1_048_588);
    const place = kafkaPlace(url);
    const { length } = await place.arrived(topic);
    const from = kafkaSource({ topic, group: topic, brokers: url });
    await using scene = await consumeAll(from, kafka({ topic: dead, brokers: url }));
    await until("all are put away", () => scene.consumer.counts.dead === length);
  });
});

test("headers of a connection do not make a dead letter by HTTP impossible, and do not travel", async () => {
  const got: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    got.push(request.headers);
    request.resume();
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const from = new MemorySource();
  const url = `http://127.0.0.1:${port}/`;
  await using _scene = await consumeAll(from, http({ url, secret, allow: ["127.0.0.1"] }));
  const hostile = {
    "transfer-encoding": "chunked",
    host: "evil.example",
    connection: "upgrade",
    expect: "100",
  };
  await from.send(newReceived("work", "bad", hostile));
  await until("it is acknowledged", () => from.acked.length === 1);
  assert.equal(got[0]?.host, `127.0.0.1:${port}`);
  assert.equal(got[0]?.["escapement-original-host"], "evil.example");
  server.closeAllConnections();
  server.close();
});

test("a request that can never be made is refused for good", async () => {
  const url = "http://127.0.0.1:9/";
  const transport = await http({ url, secret, allow: ["127.0.0.1"] }).transport.open({
    clock: systemClock,
    log: silentLogger,
  });
  const received = newReceived("work", null, { "transfer-encoding": "chunked" });
  const [result] = await transport.publish([{ ...received, destination: url, dedupeId: "d" }], {
    timeoutMs: 10_000,
  });
  assert(result?.kind === "refused" && result.permanent, result?.kind);
  await transport.close();
});
