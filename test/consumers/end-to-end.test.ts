import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { z } from "zod";
import { consume } from "../../src/consumer/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const howMany = 100;

/** Jobs of one definition are fired by the relay and handled by a consumer; those that fail there end in the dead-letter destination. */
async function story(route: Route, from: Source): Promise<void> {
  const path = join(scratchFolder("end-to-end"), "effects.db");
  const database = new DatabaseSync(path);
  database.exec("create table effects (n integer, job text)");
  const dead: string[] = [];
  const payment = defineJob({
    name: "payment",
    input: z.object({ n: z.number() }),
    delivery: "effectively-once",
    retry: { attempts: 2, backoff: { delay: 5 } },
    route,
    async run({ input, job, tx }) {
      if (input.n === 7) throw new Error("seven never works");
      await tx((db: DatabaseSync) => {
        db.prepare("insert into effects values (?, ?)").run(input.n, job.id);
      });
    },
  });
  await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  await using consumer = consume({
    jobs: [payment],
    from,
    inbox,
    log: silentLogger,
    onDead: ({ facts, error, tries }) =>
      void dead.push(`${facts?.id}: ${(error as Error).message} (${tries})`),
  });
  await using app = createEscapement({
    store: memory(),
    namespace: "billing",
    jobs: [payment],
    log: silentLogger,
  });
  await consumer.start();
  await app.start();
  const receipts = await app.enqueueMany(
    payment,
    Array.from({ length: howMany }, (_, n) => ({ input: { n }, id: `p-${n}` })),
  );
  assert.equal(receipts.length, howMany);
  const count = (): number => Number(database.prepare("select count(*) as n from effects").get()?.["n"]);
  await until("everything has taken effect", () => count() === howMany - 1 && dead.length === 1);
  await until("the sender knows", async () => (await app.count({ states: ["succeeded"] })) === howMany);
  await consumer.stop();
  await app.stop();
  await inbox.close();
  assert.deepEqual(dead, ["p-7: seven never works (2)"]);
  assert.equal(database.prepare("select count(distinct n) as n from effects").get()?.["n"], howMany - 1);
  database.close();
}

describe("fired here, run there, by one definition [B1]", async () => {
  const [redis, natsServer, kafkaServer] = [
    await testbed.redis(),
    await testbed.nats(),
    await testbed.kafka(),
  ];

  test("through Redis Streams", { skip: redis.skip }, async () => {
    const { url } = redis;
    const stream = `end-to-end:${randomUUID()}`;
    await story(
      redisStreams({ stream, url }),
      redisStreamsSource({ stream, group: "g", url, deleteHandled: true }),
    );
  });

  test("through NATS JetStream", { skip: natsServer.skip }, async () => {
    const { url } = natsServer;
    const subject = `end-to-end-${randomUUID()}`;
    await using admin = new NatsAdmin(url);
    await makeStream(admin, subject);
    await story(
      nats({ subject, servers: url }),
      natsSource({ stream: subject, consumer: "c", servers: url }),
    );
  });

  test("through Kafka", { skip: kafkaServer.skip }, async () => {
    const { url } = kafkaServer;
    const topic = `end-to-end-${randomUUID()}`;
    await makeTopic(url, topic);
    await story(kafka({ topic, brokers: url }), kafkaSource({ topic, group: topic, brokers: url }));
  });
});
