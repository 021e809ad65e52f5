import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { consume } from "../../src/consumer/index.ts";
import { MemorySource, newReceived } from "../../src/consumer/test/memory-source.ts";
import { createInbox, type InboxStore } from "../../src/inbox/index.ts";
import { type Delivery, defineJob, type HandlerContext } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { mysqlInbox } from "../../src/stores/mysql/index.ts";
import { postgresInbox } from "../../src/stores/postgres/index.ts";
import { redisInbox } from "../../src/stores/redis/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { testbed } from "../../testbed/index.ts";

const copies = 6;

/** Copies of ten messages reach two consumers with inboxes of their own on one database; each message is handled once. */
async function story(
  newStore: () => InboxStore,
  delivery: Delivery,
  run: (context: HandlerContext<number>) => Promise<void>,
): Promise<void> {
  const job = defineJob<number>({
    name: "work",
    delivery,
    retry: { attempts: 3, backoff: { delay: 5 } },
    run,
  });
  const messages = Array.from({ length: 10 }, (_, n) =>
    newReceived("work", n, { "escapement-delivery": delivery }),
  );
  const sources = [new MemorySource(), new MemorySource()];
  const inboxes = sources.map(() => createInbox({ store: newStore() }));
  const consumers = sources.map((from, index) => {
    const inbox = inboxes[index];
    assert(inbox !== undefined);
    const onDead = ({ error }: { error: unknown }): never => assert.fail(String(error));
    return consume({ jobs: [job], from, inbox, onDead, log: silentLogger });
  });
  for (const consumer of consumers) await consumer.start();
  for (let copy = 0; copy < copies; copy++)
    for (const message of messages) void sources[copy % 2]?.send(message);
  const acked = (): number => sources.reduce((sum, source) => sum + source.acked.length, 0);
  await until("all copies are acknowledged", () => acked() === copies * messages.length);
  for (const consumer of consumers) await consumer.stop();
  for (const inbox of inboxes) await inbox.close();
  const handled = consumers.reduce((sum, { counts }) => sum + counts.handled, 0);
  assert.equal(handled, messages.length);
}

describe("consumers on an inbox of a server [B5]", async () => {
  const [postgres, mysql, redis] = [await testbed.postgres(), await testbed.mysql(), await testbed.redis()];

  test("Postgres: one committed effect for each message", { skip: postgres.skip }, async () => {
    const pool = new pg.Pool({ connectionString: postgres.url });
    await pool.query("create table effects (n int)");
    let failures = 0;
    await story(
      () => postgresInbox(postgres.url),
      "effectively-once",
      async ({ input, tx }) => {
        await tx(async (db: { query(sql: string, values: unknown[]): Promise<unknown> }) => {
          await db.query("insert into effects values ($1)", [input]);
          if (input % 3 === 0 && failures++ < 3) throw new Error("rolled back");
        });
      },
    );
    const { rows } = await pool.query("select n, count(*)::int as c from effects group by n order by n");
    assert.deepEqual(
      rows,
      Array.from({ length: 10 }, (_, n) => ({ n, c: 1 })),
    );
    await pool.end();
  });

  test("MySQL: one committed effect for each message", { skip: mysql.skip }, async () => {
    const connection = await createConnection(mysql.url);
    await connection.query("create table effects (n int)");
    await story(
      () => mysqlInbox(mysql.url),
      "effectively-once",
      async ({ input, tx }) => {
        await tx(async (db: { query(sql: string, values: unknown[]): Promise<unknown> }) => {
          await db.query("insert into effects values (?)", [input]);
        });
      },
    );
    const [rows] = await connection.query("select n, count(*) as c from effects group by n order by n");
    assert.deepEqual(
      (rows as { n: number; c: number }[]).map(({ n, c }) => [n, c]),
      Array.from({ length: 10 }, (_, n) => [n, 1]),
    );
    await connection.end();
  });

  test("Redis: each message is handled once while nothing fails", { skip: redis.skip }, async () => {
    const seen: number[] = [];
    const prefix = `${redis.name}-inboxes`;
    await story(
      () => redisInbox({ url: redis.url, prefix }),
      "at-least-once",
      async ({ input }) => void seen.push(input),
    );
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      Array.from({ length: 10 }, (_, n) => n),
    );
  });
});
