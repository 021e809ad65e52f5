import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { consume } from "../../src/consumer/index.ts";
import { newReceived } from "../../src/consumer/test/memory-source.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { type PrivateServer, testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

/** A consumer goes on by itself after its broker was killed and came back, and begins even when the broker is down. */
async function story(server: PrivateServer, route: Route, from: Source): Promise<void> {
  const seen = new Set<number>();
  const job = defineJob<number>({ name: "work", run: ({ input }) => void seen.add(input) });
  const path = join(scratchFolder("restart"), "inbox.db");
  await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  await using _closing = { [Symbol.asyncDispose]: () => transport.close() };
  const publish = async (n: number): Promise<void> => {
    const message = {
      ...newReceived("work", n),
      key: `k${n}`,
      destination: route.destination,
      dedupeId: `d${n}`,
    };
    await until("it is published", async () => {
      const [result] = await transport.publish([message], { timeoutMs: 10_000 });
      return result?.kind === "acknowledged";
    });
  };
  const onDead = ({ error }: { error: unknown }): never => assert.fail(String(error));
  await publish(0);
  await server.kill();
  await using consumer = consume({ jobs: [job], from, inbox, onDead, log: silentLogger });
  await consumer.start();
  await server.restart();
  await until("what was there before is handled", () => seen.has(0));
  await publish(1);
  await until("what came later is handled", () => seen.has(1));
  await server.kill();
  await server.restart();
  await publish(2);
  await until("it goes on after another restart", () => seen.has(2));
}

describe("a consumer outlives its broker", async () => {
  const shared = { redis: await testbed.redis(), nats: await testbed.nats(), kafka: await testbed.kafka() };

  test("Redis", { skip: shared.redis.skip }, async () => {
    await using server = await testbed.redis({ private: true });
    const { url } = server;
    await story(
      server,
      redisStreams({ stream: "s", url }),
      redisStreamsSource({ stream: "s", group: "g", url, lease: "2s" }),
    );
  });

  test("NATS", { skip: shared.nats.skip }, async () => {
    await using server = await testbed.nats({ private: true });
    const servers = server.url;
    await using admin = new NatsAdmin(servers);
    await makeStream(admin, "s");
    await story(
      server,
      nats({ subject: "s", servers }),
      natsSource({ stream: "s", consumer: "c", servers, ackWait: "2s" }),
    );
  });

  test("Kafka", { skip: shared.kafka.skip }, async () => {
    await using server = await testbed.kafka({ private: true });
    const brokers = server.url;
    await makeTopic(brokers, "s");
    await story(
      server,
      kafka({ topic: "s", brokers }),
      kafkaSource({ topic: "s", group: "g", brokers, sessionTimeout: "6s" }),
    );
  });
});
