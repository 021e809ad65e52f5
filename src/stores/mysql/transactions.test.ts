import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Kysely, MysqlDialect } from "kysely";
import { createPool as createCallbackPool } from "mysql2";
import { type Connection, createConnection, createPool, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { newPrefix, open } from "./test/harness.ts";

const server = await testbed.mysql();
const succeed = { kind: "succeed", result: null } as const;

// Its types do not pass under this project's flags, so it is described here.
const { drizzle }: { drizzle(pool: unknown): { transaction: Transaction } } = await import(
  ["drizzle-orm", "mysql2"].join("/")
);

class RollBack extends Error {
  override readonly name = "RollBack";
}

/** Runs the function in a transaction of the library; what the function throws rolls it back. */
type Transaction = (work: (tx: unknown) => Promise<void>) => Promise<void>;

/** One of the libraries through which people write to MySQL, as they use it. */
interface Library {
  open(url: string): { readonly transaction: Transaction; readonly outside: unknown; close(): Promise<void> };
}

async function runIn(
  connection: Connection,
  work: (tx: unknown) => Promise<void>,
  tx: unknown,
): Promise<void> {
  await connection.beginTransaction();
  try {
    await work(tx);
    await connection.commit();
  } catch (error) {
    await connection.rollback();
    throw error;
  }
}

const libraries: Readonly<Record<string, Library>> = {
  "mysql2 with promises": {
    open(url) {
      const pool = createPool(url);
      const outside = createPool(url);
      const transaction: Transaction = async (work) => {
        const connection = await pool.getConnection();
        await runIn(connection, work, connection).finally(() => connection.release());
      };
      const close = async (): Promise<void> => void (await Promise.all([pool.end(), outside.end()]));
      return { transaction, outside, close };
    },
  },
  "mysql2 with callbacks, in another character set and SQL mode": {
    open(url) {
      const pool = createCallbackPool({
        uri: url,
        charset: "latin1_bin",
        supportBigNumbers: true,
        bigNumberStrings: true,
      });
      const transaction: Transaction = async (work) => {
        const connection = await pool.promise().getConnection();
        await connection.query("set sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'");
        await runIn(connection, work, connection.connection).finally(() => connection.release());
      };
      return { transaction, outside: pool, close: () => pool.promise().end() };
    },
  },
  Kysely: {
    open(url) {
      const db = new Kysely<object>({ dialect: new MysqlDialect({ pool: createCallbackPool(url) }) });
      return {
        transaction: (work) => db.transaction().execute(work),
        outside: db,
        close: () => db.destroy(),
      };
    },
  },
  Drizzle: {
    open(url) {
      const pool = createPool(url);
      const db = drizzle(pool);
      return { transaction: (work) => db.transaction(work), outside: db, close: () => pool.end() };
    },
  },
};

for (const [name, library] of Object.entries(libraries)) {
  describe(`enqueue in a transaction of ${name}`, { skip: server.skip }, () => {
    let store: Store;
    let opened: ReturnType<Library["open"]>;
    before(async () => {
      store = await open({ url: server.url }, `through ${name}`);
      opened = library.open(server.url);
    });
    after(async () => {
      await opened.close();
      await store.close();
    });

    test("K12: rolled back means never existed", async () => {
      const transaction = opened.transaction(async (tx) => {
        const unique = { key: "k", forMs: null };
        const jobs = [newJob("rolled-back"), newJob("bound", { after: ["rolled-back"], unique })];
        const results = await store.enqueue({ jobs, tx });
        assert.deepEqual(
          results.map(({ outcome }) => outcome),
          ["added", "added"],
        );
        throw new RollBack();
      });
      await assert.rejects(transaction, RollBack);
      assert.deepEqual(await store.get({ ids: ["rolled-back", "bound"] }), [null, null]);
    });

    test("K12: committed means exactly one job, unseen before, whatever its input holds", async () => {
      const input = JSON.stringify({ text: `it's \\ "ünïcode" 😀 ?  ${"\\".repeat(3)}' or 1=1; -- ` });
      await opened.transaction(async (tx) => {
        const jobs = [
          newJob("committed", { input, tags: ["a'b"], concurrencyKey: "k?'\\", expireInMs: 60_000 }),
        ];
        assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "added");
        assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "existing");
        assert.deepEqual(await store.get({ ids: ["committed"] }), [null]);
      });
      const [job] = await store.get({ ids: ["committed"] });
      assert.deepEqual([job?.input, job?.tags, job?.concurrencyKey], [input, ["a'b"], "k?'\\"]);
      const names = [{ name: "work", concurrency: 1, rate: null }];
      const params = { leaseMs: 30_000, limit: 10, queues: null, names, alone: false };
      const { jobs } = await store.claim({ claimer: "n", sequence: 1, ...params });
      assert.deepEqual(
        jobs.map(({ id }) => id),
        ["committed"],
      );
    });

    test("a handle outside of any transaction is refused, and nothing is written", async () => {
      const refused = store.enqueue({ jobs: [newJob("outside")], tx: opened.outside });
      await assert.rejects(refused, { code: "transaction-unavailable" });
      assert.deepEqual(await store.get({ ids: ["outside"] }), [null]);
    });
  });
}

describe("transactions of callers on MySQL", { skip: server.skip }, () => {
  let store: Store;
  let client: Connection;
  before(async () => {
    store = await open({ url: server.url }, "transactions");
    client = await createConnection(server.url);
  });
  after(async () => {
    await client.end();
    await store.close();
  });

  for (const tx of [null, 42, "begin", {}, { query: "no function" }]) {
    test(`${JSON.stringify(tx)} is not taken for a transaction`, async () => {
      await assert.rejects(store.enqueue({ jobs: [newJob("x")], tx }), { code: "transaction-unavailable" });
    });
  }

  test("a transaction with the calls of Knex is taken", async () => {
    // Stands in for Knex, which is not installed here: the same calls, on a connection of mysql2.
    const knex = { isTransaction: true, commit() {}, raw: (text: string) => client.query(text) };
    await client.beginTransaction();
    assert.equal(
      (await store.enqueue({ jobs: [newJob("by Knex", { delayMs: 60_000 })], tx: knex }))[0]?.outcome,
      "added",
    );
    await client.commit();
    assert.equal((await store.get({ ids: ["by Knex"] }))[0]?.state, "waiting");
  });

  test("a connection without a transaction, or to another database, is refused", async () => {
    await assert.rejects(store.enqueue({ jobs: [newJob("x")], tx: client }), {
      code: "transaction-unavailable",
      message: /START TRANSACTION/,
    });
    const elsewhere = await createConnection({ uri: server.url, database: "information_schema" });
    await elsewhere.beginTransaction();
    await assert.rejects(store.enqueue({ jobs: [newJob("x")], tx: elsewhere }), {
      code: "transaction-unavailable",
      message: /own database/,
    });
    await elsewhere.end();
  });

  test("K3: a snapshot that hides what was committed meanwhile adds nothing twice", async () => {
    await client.query("set transaction isolation level repeatable read");
    await client.beginTransaction();
    await client.query("select count(*) from escapement_jobs");
    const unique = { key: "held", forMs: null };
    await store.enqueue({
      jobs: [newJob("known", { delayMs: 60_000 }), newJob("holder", { unique, delayMs: 60_000 })],
    });
    const jobs = [newJob("known"), newJob("second", { unique }), newJob("child", { after: ["known"] })];
    assert.deepEqual(await store.enqueue({ jobs, tx: client }), [
      { id: "known", outcome: "existing" },
      { id: "holder", outcome: "absorbed" },
      { id: "child", outcome: "added" },
    ]);
    await client.commit();
    assert.equal((await store.get({ ids: ["child"] }))[0]?.state, "blocked");
  });

  test("a long transaction holds up neither claims of its lane nor the end of its jobs' parents", async () => {
    const names = [{ name: "long", concurrency: 1, rate: null }];
    const params = { claimer: "n", leaseMs: 30_000, limit: 10, queues: null, names, alone: false };
    const own = (id: string, changes: object = {}) => newJob(id, { name: "long", ...changes });
    await store.enqueue({ jobs: [own("parent"), own("lane-1", { concurrencyKey: "k" })] });
    await client.beginTransaction();
    const jobs = [
      own("late child", { after: ["parent"] }),
      own("lane-2", { concurrencyKey: "k" }),
      own("parent"),
    ];
    await store.enqueue({ jobs, tx: client });
    const claimed = await store.claim({ ...params, sequence: 1 });
    assert.deepEqual(claimed.jobs.map(({ id }) => id).toSorted(), ["lane-1", "parent"]);
    const finishes = claimed.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
    for (const { outcome } of await store.finish({ claimer: "n", finishes }))
      assert.equal(outcome, "written");
    await client.commit();
    // The parent ended without seeing its child; the reaper looks at children that came in a transaction.
    await store.reap({ limit: 10 });
    const next = await store.claim({ ...params, sequence: 2 });
    assert.deepEqual(next.jobs.map(({ id }) => id).toSorted(), ["lane-2", "late child"]);
  });

  test("a child that came in a transaction hears of a parent whose end is under way when the reaper looks", async (t) => {
    await store.enqueue({ jobs: [newJob("ending")] });
    const ender = await createConnection(server.url);
    t.after(() => ender.end());
    // Stands in for a finish that has looked for children, and has yet to commit.
    await ender.beginTransaction();
    await ender.query(
      `update escapement_jobs set state = 'succeeded'
        where ns = (select ns from escapement_namespaces where name = 'transactions') and id = 'ending'`,
    );
    await client.beginTransaction();
    await store.enqueue({ jobs: [newJob("unseen", { after: ["ending"] })], tx: client });
    await client.commit();
    let done = false;
    const reaping = store.reap({ limit: 10 }).finally(() => {
      done = true;
    });
    const waits = "select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'";
    const deadline = performance.now() + 4_000;
    while (!done && (await client.query<RowDataPacket[]>(waits))[0].length === 0) {
      assert(performance.now() < deadline, "the reaper neither ends nor waits");
      // The server brings this table up to date only when nobody has read it for 100 ms.
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    await ender.commit();
    await reaping;
    assert.equal((await store.get({ ids: ["unseen"] }))[0]?.state, "waiting");
  });
});

describe("effectively once on MySQL", { skip: server.skip }, () => {
  let store: Store;
  let reader: Connection;
  before(async () => {
    store = await open({ url: server.url, connections: 4 }, "effects");
    reader = await createConnection(server.url);
    await reader.query("create table effects (job varchar(100))");
  });
  after(async () => {
    await reader.end();
    await store.close();
  });

  const claim = async (id: string, sequence: number) => {
    await store.enqueue({ jobs: [newJob(id, { delivery: "effectively-once" })] });
    const names = [{ name: "work", concurrency: null, rate: null }];
    const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: true };
    const { jobs } = await store.claim({ claimer: "n", sequence, ...params });
    const token = jobs.find((job) => job.id === id)?.token ?? 0;
    return { claimer: "n", id, token, encode: (value: unknown) => JSON.stringify(value ?? null) };
  };
  const write = (id: string) => async (tx: unknown) => {
    await (tx as Connection).query("insert into effects values (?)", [id]);
    return "done";
  };
  const effects = async (id: string): Promise<number> =>
    (await reader.query<RowDataPacket[]>("select 1 from effects where job = ?", [id]))[0].length;

  test("the handle is a connection of mysql2, and its writes commit with the job's success", async () => {
    const held = await claim("a", 1);
    assert.equal((await store.transact({ ...held, run: write("a") })).outcome, "committed");
    assert.deepEqual([await effects("a"), (await store.get({ ids: ["a"] }))[0]?.state], [1, "succeeded"]);
    assert.deepEqual(await store.transact({ ...held, run: write("a") }), { outcome: "stale" });
    assert.equal(await effects("a"), 1);
  });

  test("A7: a claim that ends while its transaction is open takes the writes with it", async () => {
    const held = await claim("b", 2);
    const run = async (tx: unknown): Promise<string> => {
      await write("b")(tx);
      const { id, token } = held;
      await store.finish({ claimer: "n", finishes: [{ id, token, outcome: { kind: "release" } }] });
      return "done";
    };
    assert.deepEqual(await store.transact({ ...held, run }), { outcome: "stale" });
    assert.deepEqual([await effects("b"), (await store.get({ ids: ["b"] }))[0]?.state], [0, "waiting"]);
  });

  test("a function that ends the transaction itself is refused, and the job stays as it was", async () => {
    const held = await claim("c", 3);
    const run = async (tx: unknown): Promise<void> => (tx as Connection).rollback();
    await assert.rejects(store.transact({ ...held, run }), { code: "transaction-used" });
    assert.equal((await store.get({ ids: ["c"] }))[0]?.state, "active");
  });

  test("the lease is renewed while the transaction is open, and its handle is of no use afterwards", async () => {
    const held = await claim("d", 4);
    let kept: unknown;
    const run = async (tx: unknown): Promise<void> => {
      kept = tx;
      await write("d")(tx);
      const [extended] = await store.extend({ claimer: "n", leaseMs: 30_000, claims: [held] });
      assert.equal(extended?.outcome, "extended");
    };
    assert.equal((await store.transact({ ...held, run })).outcome, "committed");
    assert.throws(() => (kept as Connection).query("select 1"), { code: "transaction-used" });
    await assert.rejects(store.enqueue({ jobs: [newJob("late")], tx: kept }), { code: "transaction-used" });
  });

  test("more transactions than connections wait for each other, and other calls go on", async () => {
    const names = [{ name: "many", concurrency: null, rate: null }];
    const ids = Array.from({ length: 30 }, (_, n) => `many-${n}`);
    await store.enqueue({ jobs: ids.map((id) => newJob(id, { name: "many" })) });
    const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: false };
    const { jobs } = await store.claim({ claimer: "n", sequence: 5, ...params });
    const run = async (tx: unknown): Promise<void> => {
      await store.health();
      await store.enqueue({
        jobs: [newJob(`new queue ${Math.random()}`, { queue: `q${Math.random()}` })],
        tx,
      });
      await write("many")(tx);
    };
    const results = await Promise.all(
      jobs.map(({ id, token }) => store.transact({ claimer: "n", id, token, run, encode: () => null })),
    );
    assert.deepEqual(new Set(results.map(({ outcome }) => outcome)), new Set(["committed"]));
    assert.equal(await effects("many"), 30);
  });

  test("a function that goes on after a deadlock has undone its transaction is refused, and leaves nothing", async () => {
    const held = await claim("z", 100);
    const rival = await createConnection(server.url);
    await reader.query("create table if not exists accounts (id int primary key, cents int)");
    const ids = Array.from({ length: 500 }, (_, n) => [n + 1, 0]);
    await reader.query("replace into accounts values ?", [ids]);
    const add = (id: number) => `update accounts set cents = cents + 1 where id = ${id}`;
    const run = async (tx: unknown): Promise<string> => {
      const own = tx as Connection;
      await write("z")(own);
      await own.query(add(1));
      await rival.beginTransaction();
      // It has changed more, so that the other one is undone.
      await rival.query("update accounts set cents = cents + 1 where id > 2");
      await rival.query(add(2));
      const theirs = rival.query(add(1));
      for (let isWaiting = false; !isWaiting; ) {
        const [rows] = await reader.query<RowDataPacket[]>("show processlist");
        isWaiting = rows.some(({ Info }) => Info === add(1));
      }
      await assert.rejects(own.query(add(2)), { code: "ER_LOCK_DEADLOCK" });
      await theirs;
      await rival.commit();
      await own.query(add(2));
      return "done";
    };
    await assert.rejects(store.transact({ ...held, run }), { code: "transaction-used" });
    const [rows] = await reader.query<RowDataPacket[]>(
      "select cents from accounts where id <= 2 order by id",
    );
    assert.deepEqual(
      rows.map(({ cents }) => cents),
      [1, 1],
      "only the rival's",
    );
    assert.deepEqual([await effects("z"), (await store.get({ ids: ["z"] }))[0]?.state], [0, "active"]);
    await rival.end();
    // The connection goes back as it was: what is written on it afterwards commits.
    const next = await claim("y", 101);
    assert.equal((await store.transact({ ...next, run: write("y") })).outcome, "committed");
    for (const id of ["v", "w"]) await store.enqueue({ jobs: [newJob(id)] });
    assert.equal((await store.get({ ids: ["v", "w"] })).filter((job) => job !== null).length, 2);
  });

  test("a second set of tables beside the first knows nothing of it", async () => {
    const other = await open({ url: server.url, tablePrefix: newPrefix() }, "effects");
    assert.deepEqual(await other.count({ filter: {}, by: [] }), [{ count: 0 }]);
    await other.close();
  });
});
