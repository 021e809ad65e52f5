import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Kysely, MysqlDialect } from "kysely";
import { createPool as createCallbackPool } from "mysql2";
import { type Connection, createConnection, createPool, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { open } from "./test/harness.ts";

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

    test("rolled back means never existed [K12]", async () => {
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
      assert.deepEqual(await store.count({ filter: {}, by: [] }), [{ count: 0 }]);
    });

    test("committed means exactly one job, unseen before, whatever its input holds [K12]", async () => {
      const input = JSON.stringify({ text: `it's \\ "ünïcode" 😀 ?  ${"\\".repeat(3)}' or 1=1; -- ` });
      await opened.transaction(async (tx) => {
        const jobs = [
          newJob("committed", { input, tags: ["a'b"], concurrencyKey: "k?'\\", expireInMs: 60_000 }),
        ];
        assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "added");
        assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "existing");
        assert.deepEqual(await store.get({ ids: ["committed"] }), [null]);
        // A reaper folds what others have counted meanwhile, and does not wait for this.
        await store.reap({ limit: 1 });
      });
      await store.reap({ limit: 1 });
      assert.deepEqual(await store.count({ filter: {}, by: ["state"] }), [{ state: "waiting", count: 1 }]);
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

  test("a snapshot that hides what was committed meanwhile adds nothing twice [K3]", async () => {
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
    const deadline = performance.now() + 60_000;
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
