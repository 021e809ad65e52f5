import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createPool } from "mysql2";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import type { PooledConnection, RawPool } from "./connection/client.ts";
import { type MysqlOptions, migrationSql, mysql } from "./index.ts";
import { newPrefix, open as openMigrated } from "./test/harness.ts";

const server = await testbed.mysql();
/** How many jobs wait, and how many have ended, where the plan of a claim is looked at; CI takes a million. */
const planRows = Number(process.env["ESCAPEMENT_PLAN_ROWS"] ?? 100_000);

function open(options: MysqlOptions): Promise<Store> {
  return mysql(options).open({ namespace: "n", clock: systemClock, log: silentLogger });
}

describe("the schema of the MySQL store", { skip: server.skip }, () => {
  let client: Connection;
  before(async () => {
    client = await createConnection({ uri: server.url, multipleStatements: true });
  });
  after(() => client.end());

  test("several nodes that start at once make it once", async () => {
    const tablePrefix = newPrefix();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open({ url: server.url, tablePrefix })));
    await Promise.all(stores.map((store) => store.migrate()));
    const [rows] = await client.query<RowDataPacket[]>(`select version from ${tablePrefix}migrations`);
    assert.deepEqual(
      rows.map(({ ["version"]: version }) => version),
      [1],
    );
    for (const store of stores) await store.close();
  });

  test("a migration that died in its middle is taken up again", async () => {
    const tablePrefix = newPrefix();
    const [script] = migrationSql({ tablePrefix });
    assert(script);
    const half = script.sql.split(";\n").slice(0, 9);
    for (const statement of half) await client.query(statement);
    const store = await open({ url: server.url, tablePrefix });
    await store.migrate();
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    assert.deepEqual((await store.health()).problems, []);
    await store.close();
  });

  test("the printed SQL makes it as migrate does, and nothing works before", async () => {
    const tablePrefix = newPrefix();
    const store = await open({ url: server.url, tablePrefix });
    const [pending] = await store.pendingMigrations();
    assert.equal(pending?.name, "0001-core.sql");
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), {
      code: "store-unmigrated",
      message: /escapement migrate/,
    });
    await client.query(pending?.sql ?? "");
    assert.deepEqual(await store.pendingMigrations(), []);
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    assert.deepEqual((await store.health()).problems, []);
    await store.close();
  });

  test("a newer schema that breaks old nodes is refused, another newer one is not", async () => {
    const tablePrefix = newPrefix();
    const first = await openMigrated({ url: server.url, tablePrefix });
    const add = (version: number, breaking: number): Promise<unknown> =>
      client.query(
        `insert into ${tablePrefix}migrations values (${version}, '000${version}-later.sql', ${breaking}, 0)`,
      );
    await add(2, 0);
    const second = await openMigrated({ url: server.url, tablePrefix });
    await second.enqueue({ jobs: [newJob("a")] });
    await add(3, 1);
    const refusal = { code: "store-newer", message: /version 3 \(0003-later\.sql\).*upgrade escapement/ };
    await assert.rejects(open({ url: server.url, tablePrefix }), refusal);
    await assert.rejects(first.migrate(), refusal);
    await first.close();
    await second.close();
  });

  test("a missing index and weak settings are told, each with what to do", async () => {
    const own = await testbed.mysql({ private: true });
    const admin = await createConnection(own.url);
    await admin.query("set global innodb_flush_log_at_trx_commit = 2");
    const store = await openMigrated({ url: own.url });
    assert.equal(store.capabilities.durability, "weak");
    await admin.query("alter table escapement_jobs drop index escapement_jobs_line, add index other (line)");
    const { problems, details } = await store.health();
    assert.equal(details["durability"], "weak");
    assert.match(
      problems.join("\n"),
      /flush_log_at_trx_commit is 2[\s\S]*index escapement_jobs_line is missing/,
    );
    await store.close();
    await admin.end();
    await own.stop();
  });

  test("ids, names and keys are told apart by case, accents and trailing spaces", async () => {
    const store = await openMigrated({ url: server.url, tablePrefix: newPrefix() });
    const ids = ["a", "A", "á", "a ", "a  ", "ａ", "😀", "\u{10ffff}"];
    const results = await store.enqueue({
      jobs: ids.map((id) => newJob(id, { name: id, queue: id, concurrencyKey: id })),
    });
    assert(results.every(({ outcome }) => outcome === "added"));
    const names = ids.map((name) => ({ name, concurrency: 1, rate: null }));
    const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: false };
    const { jobs } = await store.claim({ claimer: "n", sequence: 1, ...params });
    assert.deepEqual(jobs.map(({ id }) => id).toSorted(), ids.toSorted());
    assert.equal(
      (await store.list({ filter: { queues: ["a"] }, limit: 9, order: "oldest", cursor: null })).jobs.length,
      1,
    );
    await store.close();
  });

  test("debounced jobs that were pruned leave nothing behind, and their key stays for those that wait", async () => {
    const tablePrefix = newPrefix();
    const store = await openMigrated({ url: server.url, tablePrefix });
    const bounced = (id: string, key: string) =>
      newJob(id, { debounce: { key, waitMs: 60_000, maxMs: null } });
    const keys = async (): Promise<unknown[]> => {
      const [rows] = await client.query<RowDataPacket[]>(
        `select cast(debounce_key as char) as debounce_key, job > 0 as is_job from ${tablePrefix}debounce_keys order by 1, 2`,
      );
      return rows.map((row) => [row["debounce_key"], row["is_job"]]);
    };
    const prune = () => {
      const keptMs = { succeededMs: 0, cancelledMs: 0, deadMs: 0, lostMs: 0, nodesMs: 0, occurrencesMs: 0 };
      return store.prune({ ...keptMs, limit: 100 });
    };
    const cancel = (...ids: string[]) => store.cancel({ select: { ids }, reason: null });
    await store.enqueue({
      jobs: [bounced("a", "k"), bounced("b", "l"), bounced("c", "l"), bounced("d", "m")],
    });
    await cancel("a", "b", "d");
    await store.enqueue({ jobs: [bounced("e", "m")] });
    // Somebody who works with a key keeps its job for now.
    await client.query(
      `start transaction; select * from ${tablePrefix}debounce_keys where ns = 1 and debounce_key = 'k' and job = 0 for update`,
    );
    assert.equal((await prune()).pruned, 2);
    await client.query("rollback");
    assert.equal((await prune()).pruned, 1);
    assert.deepEqual(await store.get({ ids: ["a", "b", "d"] }), [null, null, null]);
    assert.deepEqual(await keys(), [
      ["m", 0],
      ["m", 1],
    ]);
    await cancel("e");
    assert.equal((await prune()).pruned, 1);
    assert.deepEqual(await keys(), []);
    await store.close();
  });

  test("inputs that are larger than a packet of statements go through", async () => {
    const store = await openMigrated({ url: server.url, tablePrefix: newPrefix() });
    const input = JSON.stringify("x'\\".repeat(300_000));
    const jobs = Array.from({ length: 8 }, (_, n) => newJob(`j${n}`, { input }));
    assert(
      await store.enqueue({ jobs }).then((results) => results.every(({ outcome }) => outcome === "added")),
    );
    assert((await store.get({ ids: ["j0", "j7"] })).every((job) => job?.input === input));
    await store.close();
  });

  test("options that cannot be meant are refused", () => {
    const url = "mysql://localhost/x";
    for (const [options, message] of [
      [{}, /either a url or a pool/],
      ["postgres://localhost/x", /mysql:\/\/ or mariadb:\/\//],
      ["mysql://user:secret@localhost", /to name a database/],
      [`${url}?compress=1`, /no other parameters/],
      [{ url, tablePrefix: "a`b" }, /tablePrefix/],
      [{ url, conections: 3 }, /unknown option "conections"/],
      [{ url, connections: 1 }, /from 2 to 1000/],
      [{ url, skipLocked: "yes" }, /true or false/],
    ] as const) {
      assert.throws(
        () => mysql(options as MysqlOptions),
        (error: Error & { code: string }) => {
          assert.equal(error.code, "invalid-option");
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /secret/);
          return true;
        },
      );
    }
  });

  test(`with ${planRows} waiting and ${planRows} finished jobs a step and a prune read their index, and only a little of it [A2]`, async () => {
    const tablePrefix = newPrefix();
    const statements: string[] = [];
    const pool = createPool({ uri: server.url, connectionLimit: 3 });
    const store = await openMigrated({ pool: recording(pool, statements), tablePrefix });
    await store.enqueue({
      jobs: [newJob("waiting"), newJob("ended"), newJob("later", { delayMs: 3_600_000 })],
    });
    await multiply(client, tablePrefix, "waiting", planRows);
    await multiply(client, tablePrefix, "later", planRows);
    await end(client, tablePrefix);
    const names = [{ name: "work", concurrency: null, rate: null }];
    const params = { claimer: "n", leaseMs: 30_000, limit: 100, queues: null, names, alone: false };
    const first = await store.claim({ ...params, sequence: 1 });
    assert.equal(first.jobs.length, 100);
    statements.length = 0;
    const finishes = first.jobs.map(({ id, token }) => ({
      id,
      token,
      outcome: { kind: "succeed", result: null } as const,
    }));
    assert.equal(
      (await store.step({ finishes, claim: { ...params, sequence: 2 } })).claimed.jobs.length,
      100,
    );
    const year = 365 * 86_400_000;
    const kept = { succeededMs: year, cancelledMs: year, deadMs: year, lostMs: year };
    await store.prune({ ...kept, nodesMs: year, occurrencesMs: year, limit: 100 });
    await client.query(
      "set @escapement_now = 1e15, @escapement_go = 1, @escapement_last = 0".replaceAll(
        "escapement_",
        tablePrefix,
      ),
    );
    const explained = statements.filter((text) => text.includes(`${tablePrefix}jobs`));
    assert(explained.length >= 5, "the statements of a step were seen");
    for (const text of explained) await assertIndexed(client, text, tablePrefix);
    await store.close();
    await pool.promise().end();
  });
});

/** A pool that keeps the statements which went through it. */
function recording(pool: ReturnType<typeof createPool>, statements: string[]): RawPool {
  return {
    getConnection(callback) {
      pool.getConnection((error, connection) => {
        const own = connection as unknown as PooledConnection;
        const recorded = new Proxy(own, {
          get(target, key) {
            const value: unknown = Reflect.get(target, key, target);
            if (typeof value !== "function") return value;
            return (...args: unknown[]) => {
              if (key === "query") statements.push((args[0] as { sql: string }).sql);
              return Reflect.apply(value, target, args);
            };
          },
        });
        callback(error, recorded);
      });
    },
  };
}

async function multiply(client: Connection, prefix: string, id: string, copies: number): Promise<void> {
  const [columns] = await client.query<RowDataPacket[]>(
    `select column_name as name from information_schema.columns
     where table_schema = database() and table_name = '${prefix}jobs' and column_name <> 'seq'`,
  );
  const names = columns.map(({ ["name"]: name }) => String(name));
  // Each round doubles them.
  for (let [count, round] = [1, 0]; count < copies; round += 1) {
    const values = names.map((name) => (name === "id" ? `concat(id, '.', ${round})` : name));
    const more = Math.min(count, copies - count);
    await client.query(
      `insert into ${prefix}jobs (${names.join(", ")})
       select ${values.join(", ")} from ${prefix}jobs where ns > 0 and (id = '${id}' or id like '${id}.%') limit ${more}`,
    );
    count += more;
  }
}

/** Lets half of the jobs that are due have ended. */
async function end(client: Connection, prefix: string): Promise<void> {
  await client.query(
    `update ${prefix}jobs set state = 'succeeded', line = (select line from ${prefix}lines where kind = 'succeeded' limit 1)
     where seq % 2 = 0 and run_at <= unix_timestamp() * 1000;
     analyze table ${prefix}jobs`,
  );
}

async function assertIndexed(client: Connection, text: string, prefix: string): Promise<void> {
  const statement = text.replace(/\binto @\w+/, "");
  const [rows] = await client.query<RowDataPacket[]>(`explain ${statement}`);
  for (const row of rows) {
    if (row["table"] === null || !/^(j|a|\w+_jobs)$/.test(String(row["table"]))) continue;
    assert(
      ["PRIMARY", `${prefix}jobs_line`, `${prefix}jobs_id`].includes(String(row["key"])),
      `${text}\n${JSON.stringify(rows)}`,
    );
    // A grouping by leaps looks at a step for each line and priority; its estimate is the number of steps.
    assert(row["type"] !== "ALL" && row["type"] !== "index", `${text}\n${JSON.stringify(rows)}`);
    if (
      /group by line, urgency/.test(text) &&
      String(row["Extra"]).includes("Using index") &&
      row["key"] !== "PRIMARY"
    )
      assert.match(String(row["Extra"]), /Using index for group-by/, `${text}\n${JSON.stringify(rows)}`);
  }
}
