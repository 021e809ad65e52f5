import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { Inbox, type InboxStore } from "../../src/inbox/index.ts";
import { FaultProxy } from "../../src/proof/proxy.ts";
import { systemRuntime } from "../../src/runtime/runtime.ts";
import { MysqlInbox } from "../../src/stores/mysql/inbox.ts";
import { PostgresInbox } from "../../src/stores/postgres/inbox.ts";
import { postgresInbox } from "../../src/stores/postgres/index.ts";
import { redisInbox } from "../../src/stores/redis/index.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { patiently, until } from "../../src/testing/until.ts";
import { testbed } from "../../testbed/index.ts";

const [postgres, mysql, redis] = [await testbed.postgres(), await testbed.mysql(), await testbed.redis()];

/** For those calls that are to run into it; what must be answered is asked for again, or has {@link generousMs}. */
const callTimeoutMs = 1_000;
const generousMs = 60_000;
/** Far longer than a test may take: whoever answers meanwhile has given up. */
const longMs = 600_000;
const unavailable = { code: "store-unavailable" };

const claimed = (key: string) => ({ key, holder: "h", leaseMs: 60_000, retentionMs: 60_000 });

for (const [name, server, open] of [
  [
    "Postgres",
    postgres,
    (url: string, timeoutMs: number): InboxStore => new PostgresInbox({ url }, timeoutMs),
  ],
  ["MySQL", mysql, (url: string, timeoutMs: number): InboxStore => new MysqlInbox({ url }, timeoutMs)],
] as const) {
  describe(`the inbox on ${name} when the network fails`, { skip: server.skip }, () => {
    test("a lost reply times out, and the next call uses another connection", async () => {
      await using proxy = await FaultProxy.start(server.url);
      const store = open(proxy.url, callTimeoutMs);
      await patiently(() => store.migrate());
      const key = `vanished ${Math.random()}`;
      assert.deepEqual(await patiently(() => store.begin(claimed(key))), { outcome: "begun", token: 1 });
      const claim = { key, token: 1, leaseMs: 60_000, retentionMs: 60_000 };
      for (const call of [
        () => store.begin(claimed(key)),
        () => store.extend(claim),
        // What was sent may arrive all the same.
        () => store.release({ ...claim, key: "of nobody" }),
        () => store.commit({ ...claim, run: () => "never" }),
      ]) {
        proxy.blackHole(longMs);
        await assert.rejects(call, unavailable);
        proxy.pass();
        assert.equal(await patiently(() => store.extend(claim)), true);
      }
      proxy.blackHole(longMs);
      await store.close();
    });

    test("a commit whose network fails after the effect says so, and the effect is undone", async () => {
      await using proxy = await FaultProxy.start(server.url);
      const [store, other] = [open(proxy.url, callTimeoutMs), open(server.url, generousMs)];
      await other.migrate();
      const key = `undone ${Math.random()}`;
      await other.begin(claimed(key));
      const claim = { key, token: 1, retentionMs: 60_000 };
      await assert.rejects(store.commit({ ...claim, run: () => proxy.blackHole(longMs) }), unavailable);
      proxy.cut();
      assert.equal((await other.commit({ ...claim, run: () => "again" })).outcome, "committed");
      await Promise.all([store.close(), other.close()]);
    });

    test("connections that were cut are replaced, and no copy fails for it", async () => {
      await using proxy = await FaultProxy.start(server.url);
      await using inbox = new Inbox({ store: open(proxy.url, generousMs) }, systemRuntime);
      const many = (round: number) =>
        Promise.all(
          Array.from({ length: 4 }, (_, n) =>
            inbox.handle({ key: `cut ${round} ${n} ${Math.random()}` }, () => {}),
          ),
        );
      for (let round = 0; round < 3; round += 1) {
        for (const { outcome } of await many(round)) assert.equal(outcome, "handled");
        proxy.cut(100);
      }
    });

    test("what the effect throws is the caller's own, also when it looks like a broken connection", async () => {
      await using inbox = new Inbox({ store: open(server.url, generousMs) }, systemRuntime);
      const error = Object.assign(new Error("connect ECONNREFUSED 192.0.2.1"), { code: "ECONNREFUSED" });
      const failing = inbox.handle({ key: `own ${Math.random()}` }, () => Promise.reject(error));
      await assert.rejects(failing, (thrown) => thrown === error);
    });
  });
}

test("the inbox on Postgres outlives idle connections that the server ends", {
  skip: postgres.skip,
}, async () => {
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  const store = postgresInbox(postgres.url);
  await store.migrate();
  const key = `ended ${Math.random()}`;
  await store.begin(claimed(key));
  const own = "from pg_stat_activity where application_name = 'escapement' and datname = current_database()";
  const { rows } = await admin.query(`select pid, pg_terminate_backend(pid) ${own}`);
  assert(rows.length > 0);
  const pids = rows.map(({ pid }) => pid);
  // An error without a listener would end the process when it hears of it.
  await until(
    "they have ended",
    async () => (await admin.query(`select 1 ${own} and pid = any ($1)`, [pids])).rows.length === 0,
  );
  assert.deepEqual(await patiently(() => store.begin(claimed(key))), { outcome: "begun", token: 1 });
  await Promise.all([store.close(), admin.end()]);
});

/** A zone as in Berlin, which the server is told of: it need not have any. Summer time ends at 2025-10-26T01:00Z. */
const zone = { id: 9_999, name: "Escapement/Twice", summer: 1_743_296_400, winter: 1_761_440_400 };

const zoneStatements = [
  `insert into mysql.time_zone values (${zone.id}, 'N')`,
  `insert into mysql.time_zone_name values ('${zone.name}', ${zone.id})`,
  `insert into mysql.time_zone_transition values (${zone.id}, ${zone.summer}, 1), (${zone.id}, ${zone.winter}, 0)`,
  `insert into mysql.time_zone_transition_type values (${zone.id}, 0, 3600, 0, 'CET'), (${zone.id}, 1, 7200, 1, 'CEST')`,
];

const noZoneStatements = [
  "time_zone",
  "time_zone_name",
  "time_zone_transition",
  "time_zone_transition_type",
].map((table) => `delete from mysql.${table} where time_zone_id = ${zone.id}`);

test("the inbox on MySQL uses no connection again on which an effect has ended its transaction", {
  skip: mysql.skip,
}, async () => {
  await using inbox = new Inbox({ store: new MysqlInbox({ url: mysql.url }) }, systemRuntime);
  type Db = { query(sql: string): Promise<[{ id: number }[]]> };
  const idOf = async (db: Db): Promise<number> =>
    (await db.query("select connection_id() as id"))[0][0]?.id ?? 0;
  let spoilt = 0;
  const spoil = async (db: Db): Promise<void> => {
    spoilt = await idOf(db);
    await db.query("set autocommit = 1");
  };
  await assert.rejects(inbox.handle({ key: `spoilt ${Math.random()}` }, spoil), { code: "transaction-used" });
  for (let n = 0; n < 3; n++)
    await inbox.handle({ key: `next ${Math.random()}` }, async (db: Db) =>
      assert.notEqual(await idOf(db), spoilt),
    );
});

test("the inbox on MySQL reads a clock that knows no hour that comes twice", {
  skip: mysql.skip,
}, async (t) => {
  const { createConnection } = await import("mysql2/promise");
  const admin = await createConnection(mysql.url);
  const store = new MysqlInbox({ url: mysql.url });
  t.after(async () => {
    for (const statement of noZoneStatements) await admin.query(statement);
    await Promise.all([store.close(), admin.end()]);
  });
  for (const statement of [...noZoneStatements, ...zoneStatements]) await admin.query(statement);
  await store.migrate();
  // Half past two in the night, both times.
  for (const seconds of [zone.winter - 1_800, zone.winter + 1_800]) {
    const key = `twice ${Math.random()}`;
    await store.begin(claimed(key));
    const run = async (db: unknown): Promise<void> => {
      const connection = db as { query(sql: string): Promise<unknown> };
      await connection.query(`set time_zone = '${zone.name}', timestamp = ${seconds}`);
    };
    await store.commit({ key, token: 1, retentionMs: 60_000, run });
    const [rows] = await admin.query("select done_until from escapement_inbox where `key` = ?", [key]);
    assert.deepEqual(rows, [{ done_until: seconds * 1_000 + 60_000 }]);
  }
});

test("an inbox on Redis that could not connect lets go of the server", { skip: redis.skip }, async () => {
  await using proxy = await FaultProxy.start(redis.url);
  const store = redisInbox(`${proxy.url}?callTimeout=${callTimeoutMs}ms`);
  proxy.cut(60_000);
  await assert.rejects(store.migrate(), unavailable);
  proxy.pass();
  // A client that still tries would come now, after a second at the most.
  const until = performance.now() + 1_500;
  while (performance.now() < until) {
    await delay(25);
    assert.equal(proxy.connections, 0);
  }
  const late = claimed(`late ${Math.random()}`);
  assert.equal((await patiently(() => store.begin(late))).outcome, "begun");
  await store.close();
});

test("an inbox on SQLite that could not be opened is opened by the next call", async () => {
  const folder = await mkdtemp(join(tmpdir(), "escapement-inbox-"));
  await writeFile(join(folder, "later"), "a file where a folder should be");
  const store = sqliteInbox(join(folder, "later", "inbox.db"));
  await assert.rejects(store.migrate(), unavailable);
  await rm(join(folder, "later"));
  await store.migrate();
  assert.equal((await store.begin(claimed("k"))).outcome, "begun");
  await store.close();
  await rm(folder, { recursive: true });
});
