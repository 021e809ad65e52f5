// A consumer in a process of its own, to be killed: node process.ts kind url destination database.
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { consume } from "../../src/consumer/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { kafkaSource } from "../../src/transports/kafka/index.ts";
import { natsSource } from "../../src/transports/nats/index.ts";
import { redisStreamsSource } from "../../src/transports/redis-streams/index.ts";

const [kind = "", url = "", destination = "", database = ""] = process.argv.slice(2);

const sources = {
  kafka: () => kafkaSource({ topic: destination, group: destination, brokers: url, sessionTimeout: "6s" }),
  nats: () => natsSource({ stream: destination, consumer: "payments", servers: url, ackWait: "2s" }),
  "redis-streams": () =>
    redisStreamsSource({ stream: destination, group: "payments", url, lease: "2s", shards: 1 }),
  "redis-cluster": () =>
    redisStreamsSource({ stream: destination, group: "payments", url, lease: "2s", shards: 3 }),
};

const payment = defineJob<{ id: string }>({
  name: "payment",
  delivery: "effectively-once",
  retry: { attempts: 50, backoff: { delay: 10, max: 100 } },
  async run({ input, tx, job }) {
    await sleep(5);
    // Every seventh fails once: what is tried again takes effect once, too.
    if (job.attempt === 1 && /7$/.test(input.id)) throw new Error("not at the first try");
    await tx((db: DatabaseSync) => {
      db.prepare("insert into effects values (?)").run(input.id);
    });
    process.send?.({ handled: input.id });
  },
});

const inbox = createInbox({ store: sqliteInbox({ path: database, durability: "normal" }), lease: "1s" });
const consumer = consume({
  jobs: [payment],
  from: sources[kind as keyof typeof sources](),
  inbox,
  concurrency: 8,
  onDead: ({ error }) => {
    throw new Error("nothing dies here", { cause: error });
  },
});
await consumer.start();
process.send?.({ started: true });
process.once("message", async () => {
  await consumer.stop({ timeout: "20s" });
  await inbox.close();
  process.send?.({ counts: consumer.counts });
  process.disconnect();
});
