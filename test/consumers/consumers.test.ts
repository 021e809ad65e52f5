import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { idempotencyKey } from "../../src/idempotency.ts";
import { silentLogger } from "../../src/log.ts";
import { encodeHeader, type Message } from "../../src/message/message.ts";
import type { Route } from "../../src/message/transport.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { kafka } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams } from "../../src/transports/redis-streams/index.ts";
import { type Server, testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const howMany = 300;

function messageOf(destination: string, id: string): Message {
  const fireAt = new Date("2026-11-15T03:00:00.000Z");
  const key = idempotencyKey({ namespace: "test", id, schedule: null, fireAt });
  return {
    destination,
    key: `customer-${Number(id.split("-").at(-1)) % 40}`,
    // Each copy is another message to the broker, so that it is the inbox that has to tell.
    dedupeId: randomUUID(),
    headers: {
      "content-type": "application/json",
      "idempotency-key": key,
      "escapement-namespace": "test",
      "escapement-id": encodeHeader(id),
      "escapement-name": "payment",
      "escapement-queue": "default",
      "escapement-delivery": "effectively-once",
      "escapement-fire-at": fireAt.toISOString(),
      "escapement-attempt": "1",
      "escapement-token": "1",
      "escapement-redrives": "0",
    },
    body: JSON.stringify({ id }),
  };
}

/** A consumer in a process of its own. */
class Child implements AsyncDisposable {
  readonly #process: ChildProcess;
  handled = 0;
  counts: { handled: number; duplicates: number } | null = null;

  constructor(args: readonly string[]) {
    this.#process = fork(join(import.meta.dirname, "process.ts"), args, {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process.on("message", (news: { handled?: string; counts?: Child["counts"] }) => {
      if (news.handled !== undefined) this.handled += 1;
      if (news.counts) this.counts = news.counts;
    });
  }

  async kill(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }

  /** Ends it in any case, so that a test that fails leaves nothing behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.send("stop");
    await ended;
    assert.equal(this.#process.exitCode, 0);
  }
}

async function publish(route: Route, ids: readonly string[]): Promise<void> {
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  const messages = ids.map((id) => messageOf(route.destination, id));
  const results = await transport.publish(messages, { timeoutMs: 30_000 });
  assert(results.every(({ kind }) => kind === "acknowledged"));
  await transport.close();
}

/** All take effect once although every third is sent twice, some fail, and a consumer is killed in the middle. */
async function story(kind: string, route: Route, url: string): Promise<void> {
  const path = join(scratchFolder("consumers"), "effects.db");
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; create table effects (id text)");
  const count = (): number => Number(database.prepare("select count(*) as n from effects").get()?.["n"]);
  const ids = Array.from({ length: howMany }, (_, index) => `invoice-${index}`);
  await publish(route, ids);
  const args = [kind, url, route.destination, path];
  await using first = new Child(args);
  await using second = new Child(args);
  await until(
    "both are at work, or all is done",
    () => (first.handled > 20 && second.handled > 20) || count() > 100,
  );
  const victim = first.handled > 0 ? first : second;
  const survivor = victim === first ? second : first;
  await victim.kill();
  await publish(
    route,
    ids.filter((_, index) => index % 3 === 0),
  );
  await using third = new Child(args);
  await until("everything has taken effect", () => count() >= howMany);
  // What is still delivered again, now that all is done, must not take effect again.
  await publish(route, ids.slice(0, 50));
  const probe = Array.from({ length: 20 }, (_, index) => `probe-${index}`);
  await publish(route, probe);
  await until("the last ones have taken effect", () => count() >= howMany + probe.length);
  await Promise.all([survivor.stop(), third.stop()]);
  const effects = database.prepare("select id, count(*) as n from effects group by id").all();
  assert.equal(effects.length, howMany + probe.length);
  assert.deepEqual(
    effects.filter(({ n }) => n !== 1),
    [],
  );
  database.close();
}

const skipOf = ({ skip }: Server): { skip: false | string } => ({ skip });

describe("consumers, one of them killed: every effect once, none lost [B5]", {
  concurrency: false,
}, async () => {
  const [redis, cluster, natsServer, kafkaServer] = [
    await testbed.redis(),
    await testbed.redisCluster(),
    await testbed.nats(),
    await testbed.kafka(),
  ];

  test("Redis Streams", skipOf(redis), async () => {
    const { url } = redis;
    await story("redis-streams", redisStreams({ stream: `consumers:${randomUUID()}`, url }), url);
  });

  test("Redis Streams on a Cluster, three shards", skipOf(cluster), async () => {
    const { url } = cluster;
    await story("redis-cluster", redisStreams({ stream: `consumers:${randomUUID()}`, url, shards: 3 }), url);
  });

  test("NATS JetStream", skipOf(natsServer), async () => {
    const { url } = natsServer;
    const subject = `consumers-${randomUUID()}`;
    await using admin = new NatsAdmin(url);
    await makeStream(admin, subject);
    await story("nats", nats({ subject, servers: url }), url);
  });

  test("Kafka", skipOf(kafkaServer), async () => {
    const { url } = kafkaServer;
    const topic = `consumers-${randomUUID()}`;
    await makeTopic(url, topic);
    await story("kafka", kafka({ topic, brokers: url }), url);
  });
});
