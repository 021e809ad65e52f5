import { randomUUID } from "node:crypto";
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
import { testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const howMany = 30;

/** Stopped while it still connects, a consumer ends as soon as it can, and keeps nothing from the next. */
async function story(route: Route, from: () => Source): Promise<void> {
  const seen = new Set<number>();
  const job = defineJob<number>({ name: "work", run: ({ input }) => void seen.add(input) });
  const path = join(scratchFolder("stop"), "inbox.db");
  await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
  const messages = Array.from({ length: howMany }, (_, n) => ({
    ...newReceived("work", n),
    key: `k${n}`,
    destination: route.destination,
    dedupeId: `d${n}`,
  }));
  await transport.publish(messages, { timeoutMs: 10_000 });
  await transport.close();
  const parts = { jobs: [job], inbox, onDead: () => {}, log: silentLogger };
  const hasty = consume({ ...parts, from: from() });
  await hasty.start();
  let isOver = false;
  void hasty.stop({ timeout: "1m" }).then(() => {
    isOver = true;
  });
  await until("it has stopped", () => isOver);
  await using next = consume({ ...parts, from: from() });
  await next.start();
  await until("the next one gets everything", () => seen.size === howMany);
}

describe("a consumer that is stopped while it connects", async () => {
  const [redis, natsServer, kafkaServer] = [
    await testbed.redis(),
    await testbed.nats(),
    await testbed.kafka(),
  ];
  const name = `stop-${randomUUID()}`;

  test("Redis", { skip: redis.skip }, async () => {
    const { url } = redis;
    await story(redisStreams({ stream: name, url }), () =>
      redisStreamsSource({ stream: name, group: "g", url, lease: "2s" }),
    );
  });

  test("NATS", { skip: natsServer.skip }, async () => {
    const servers = natsServer.url;
    await using admin = new NatsAdmin(servers);
    await makeStream(admin, name);
    await story(nats({ subject: name, servers }), () =>
      natsSource({ stream: name, consumer: "c", servers, ackWait: "2s" }),
    );
  });

  test("Kafka", { skip: kafkaServer.skip }, async () => {
    const brokers = kafkaServer.url;
    await makeTopic(brokers, name);
    await story(kafka({ topic: name, brokers }), () =>
      kafkaSource({ topic: name, group: name, brokers, sessionTimeout: "6s" }),
    );
  });
});
