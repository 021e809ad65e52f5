import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { consume, type DeadMessage, httpEndpoint } from "../../src/consumer/index.ts";
import { newReceived } from "../../src/consumer/test/memory-source.ts";
import { idempotencyKey } from "../../src/idempotency.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { ReceivedMessage, Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { signMessage } from "../../src/transports/http/index.ts";
import { secret } from "../../src/transports/http/test/place.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const [natsServer, kafkaServer, redisServer] = [
  await testbed.nats(),
  await testbed.kafka(),
  await testbed.redis(),
];

const namespaces = ["alpha", "beta"] as const;

/** The same id and the same input in both namespaces: only the namespace tells them apart. */
function messageOf(namespace: string, name: string, id: string): ReceivedMessage {
  const fireAt = new Date("2026-11-15T03:00:00.000Z");
  return newReceived(name, id, {
    "escapement-id": id,
    "escapement-namespace": namespace,
    "idempotency-key": idempotencyKey({ namespace, id, schedule: null, fireAt }),
  });
}

/** Everything that one namespace's consumer sees. The inbox is shared by both. */
async function startConsumer(namespace: string, from: Source, inbox: ReturnType<typeof createInbox>) {
  const handled: string[] = [];
  const dead: DeadMessage[] = [];
  const job = defineJob<string>({ name: "work", run: ({ input }) => void handled.push(input) });
  const options = { namespace, metrics: true, log: silentLogger };
  const consumer = consume({ jobs: [job], from, inbox, onDead: (one) => void dead.push(one), ...options });
  await consumer.start();
  return { namespace, consumer, handled, dead };
}

/** Two namespaces publish the same ids to one place, each with one job that the other knows nothing of. */
async function story(route: Route, sourceOf: (group: string) => Source): Promise<void> {
  const path = join(scratchFolder("namespaces"), "inbox.db");
  await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  const sides = await Promise.all(namespaces.map((one) => startConsumer(one, sourceOf(one), inbox)));
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  const messages = namespaces.flatMap((one) =>
    [messageOf(one, "work", "a"), messageOf(one, "work", "b"), messageOf(one, `secret-of-${one}`, "c")].map(
      (message) => ({ ...message, destination: route.destination, dedupeId: randomUUID() }),
    ),
  );
  const results = await transport.publish(messages, { timeoutMs: 30_000 });
  assert(results.every(({ kind }) => kind === "acknowledged"));
  await transport.close();
  for (const { consumer, namespace, handled, dead } of sides) {
    await until(`${namespace} is done with its own, and has passed over the others`, () => {
      const { handled: ran, dead: died, passedOver } = consumer.counts;
      return ran + died + passedOver === messages.length;
    });
    assert.deepEqual(handled.toSorted(), ["a", "b"]);
    const { counts } = consumer;
    assert.deepEqual([counts.handled, counts.duplicates, counts.dead, counts.passedOver], [2, 0, 1, 3]);
    assert.deepEqual(
      dead.map(({ facts, message }) => facts?.namespace ?? message.headers["escapement-namespace"]),
      [namespace],
    );
    const other = namespaces.find((one) => one !== namespace) ?? "";
    const metrics = await consumer.metrics();
    assert(!metrics.includes(other), "its metrics tell nothing of the other");
    assert.match(metrics, /escapement_consumed_total\{name="",outcome="passed-over"\} 3/);
  }
  await Promise.all(sides.map(({ consumer }) => consumer.stop()));
}

describe("two namespaces that share one broker see nothing of each other", () => {
  test("Kafka", { skip: kafkaServer.skip }, async () => {
    const { url } = kafkaServer;
    const topic = `shared-${randomUUID()}`;
    await makeTopic(url, topic);
    await story(kafka({ topic, brokers: url }), (group) =>
      kafkaSource({ topic, group: `${topic}-${group}`, brokers: url }),
    );
  });

  test("NATS", { skip: natsServer.skip }, async () => {
    const { url } = natsServer;
    const subject = `shared-${randomUUID()}`;
    await using admin = new NatsAdmin(url);
    await makeStream(admin, subject);
    await story(nats({ subject, servers: url }), (consumer) =>
      natsSource({ stream: subject, consumer, servers: url }),
    );
  });

  test("Redis Streams", { skip: redisServer.skip }, async () => {
    const { url } = redisServer;
    const stream = `shared-${randomUUID()}`;
    await story(redisStreams({ stream, url }), (group) => redisStreamsSource({ stream, group, url }));
  });

  test("HTTP: an endpoint refuses the other's, and its inbox keeps no trace of them", async () => {
    const path = join(scratchFolder("namespaces"), "inbox.db");
    await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
    const seen: string[] = [];
    const endpointOf = (namespace: string) =>
      httpEndpoint({
        jobs: [
          defineJob<string>({ name: "work", run: ({ input }) => void seen.push(`${namespace}: ${input}`) }),
        ],
        inbox,
        secret,
        namespace,
        metrics: true,
        log: silentLogger,
      });
    const [alpha, beta] = [endpointOf("alpha"), endpointOf("beta")];
    const post = (endpoint: typeof alpha, namespace: string) => {
      const { headers, body } = messageOf(namespace, "work", "a");
      const signed = signMessage({ headers, body, secret });
      return endpoint.fetch(
        new Request("http://receiver.example/", { method: "POST", headers: signed, body }),
      );
    };
    const refused = await post(alpha, "beta");
    assert.deepEqual([refused.status, seen], [404, []]);
    assert.doesNotMatch(await alpha.metrics(), /beta/);
    for (const [endpoint, namespace] of [
      [beta, "beta"],
      [alpha, "alpha"],
    ] as const)
      assert.equal((await post(endpoint, namespace)).status, 200);
    assert.deepEqual(seen, ["beta: a", "alpha: a"]);
    await Promise.all([alpha.stop(), beta.stop()]);
  });
});
