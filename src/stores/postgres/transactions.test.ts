import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgresJs from "postgres";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { postgres } from "./index.ts";

const server = await testbed.postgres();
const pooler = await testbed.pgbouncer();

// Its types do not pass under this project's flags, so it is described here.
const { drizzle: drizzleOnPostgres }: { drizzle(sql: unknown): { transaction: Transaction } } = await import(
  ["drizzle-orm", "postgres-js"].join("/")
);

class RollBack extends Error {
  override readonly name = "RollBack";
}

/** Runs the function in a transaction of the library; what the function throws rolls it back. */
type Transaction = (work: (tx: unknown) => Promise<void>) => Promise<void>;

/** One of the libraries through which people write to Postgres, as they use it. */
interface Library {
  open(url: string): { readonly transaction: Transaction; readonly outside: unknown; close(): Promise<void> };
}

const libraries: Readonly<Record<string, Library>> = {
  pg: {
    open(url) {
      const pool = new pg.Pool({ connectionString: url, max: 2 });
      const transaction: Transaction = async (work) => {
        const client = await pool.connect();
        try {
          await client.query("begin");
          await work(client);
          await client.query("commit");
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      };
      return { transaction, outside: pool, close: () => pool.end() };
    },
  },
  postgres: {
    open(url) {
      const sql = postgresJs(url, { max: 2, prepare: false });
      const transaction: Transaction = async (work) => void (await sql.begin((tx) => work(tx)));
      return { transaction, outside: sql, close: () => sql.end() };
    },
  },
  "Drizzle on pg": {
    open(url) {
      const pool = new pg.Pool({ connectionString: url, max: 2 });
      const db = drizzleOnPg(pool);
      return { transaction: (work) => db.transaction(work), outside: db, close: () => pool.end() };
    },
  },
  "Drizzle on postgres": {
    open(url) {
      const sql = postgresJs(url, { max: 2, prepare: false });
      const db = drizzleOnPostgres(sql);
      return { transaction: (work) => db.transaction(work), outside: db, close: () => sql.end() };
    },
  },
  Kysely: {
    open(url) {
      const pool = new pg.Pool({ connectionString: url, max: 2 });
      const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
      return {
        transaction: (work) => db.transaction().execute(work),
        outside: db,
        close: () => db.destroy(),
      };
    },
  },
};

/** Stands in for libraries that are not installed here: the same calls as theirs, on a client of pg. */
function likeKnex(client: pg.ClientBase): unknown {
  return {
    isTransaction: true,
    raw(sql: string, bindings: unknown[]) {
      let place = 0;
      return client.query(
        sql.replaceAll("?", () => {
          place += 1;
          return `$${place}`;
        }),
        bindings,
      );
    },
  };
}

function likePrisma(client: pg.ClientBase): unknown {
  return {
    $queryRawUnsafe: async (sql: string, ...values: unknown[]) => (await client.query(sql, values)).rows,
  };
}

async function open(url: string, namespace: string): Promise<Store> {
  const store = await postgres(url).open({ namespace, clock: systemClock, log: silentLogger });
  await store.migrate();
  return store;
}

/** Resolves with the first notice that tells of new jobs; notices may be late, so the deadline is generous. */
async function nextWakeUp(store: Store): Promise<{ heard: Promise<Notice>; stop: () => Promise<void> }> {
  const { promise, resolve, reject } = Promise.withResolvers<Notice>();
  const timer = setTimeout(() => reject(new Error("no wake-up within 10 s")), 10_000);
  const unsubscribe = await store.subscribe((notice) => {
    if (notice.kind === "jobs") resolve(notice);
  });
  const stop = async (): Promise<void> => {
    clearTimeout(timer);
    await unsubscribe();
  };
  return { heard: promise, stop };
}

for (const [name, library] of Object.entries(libraries)) {
  describe(`enqueue in a transaction of ${name}`, { skip: server.skip }, () => {
    let store: Store;
    let other: Store;
    let opened: ReturnType<Library["open"]>;
    before(async () => {
      store = await open(server.url, `through ${name}`);
      other = await open(server.url, `through ${name}`);
      opened = library.open(server.url);
    });
    after(async () => {
      await opened.close();
      await store.close();
      await other.close();
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
    });

    test("committed means exactly one job, unseen before, and a wake-up for others [K12]", async () => {
      const { heard, stop } = await nextWakeUp(other);
      try {
        await opened.transaction(async (tx) => {
          const jobs = [newJob("committed", { queue: "tx" })];
          assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "added");
          assert.equal((await store.enqueue({ jobs, tx }))[0]?.outcome, "existing");
          assert.deepEqual(await other.get({ ids: ["committed"] }), [null]);
        });
        assert.deepEqual(await heard, { kind: "jobs", queues: ["tx"] });
        assert.deepEqual(await other.count({ filter: { ids: ["committed"] }, by: [] }), [{ count: 1 }]);
      } finally {
        await stop();
      }
    });

    test("a handle outside of any transaction is refused, and nothing is written", async () => {
      const refused = store.enqueue({ jobs: [newJob("outside")], tx: opened.outside });
      await assert.rejects(refused, { code: "transaction-unavailable" });
      assert.deepEqual(await store.get({ ids: ["outside"] }), [null]);
    });
  });
}

describe("transactions of callers on Postgres", { skip: server.skip }, () => {
  let store: Store;
  let client: pg.Client;
  before(async () => {
    store = await open(server.url, "transactions");
    client = new pg.Client(server.url);
    await client.connect();
  });
  after(async () => {
    await client.end();
    await store.close();
  });

  for (const [name, adapt] of Object.entries({ Knex: likeKnex, Prisma: likePrisma })) {
    test(`a transaction with the calls of ${name} is taken`, async () => {
      await client.query("begin");
      const results = await store.enqueue({ jobs: [newJob(`by ${name}`)], tx: adapt(client) });
      assert.equal(results[0]?.outcome, "added");
      await client.query("commit");
      assert.equal((await store.get({ ids: [`by ${name}`] }))[0]?.state, "waiting");
    });
  }

  for (const tx of [null, 42, "begin", {}, { query: "no function" }]) {
    test(`${JSON.stringify(tx)} is not taken for a transaction`, async () => {
      await assert.rejects(store.enqueue({ jobs: [newJob("x")], tx }), { code: "transaction-unavailable" });
    });
  }

  test("many jobs enqueued at once in a transaction commit with it, and pg has nothing to warn of [K12]", async (t) => {
    const warnings: string[] = [];
    const note = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", note);
    t.after(() => process.off("warning", note));
    const later = (id: string) => newJob(id, { delayMs: 60_000 });
    const ids = Array.from({ length: 20 }, (_, n) => `at once ${n}`);
    await client.query("begin");
    const added = await Promise.all(ids.map((id) => store.enqueue({ jobs: [later(id)], tx: client })));
    assert.ok(added.every(([one]) => one?.outcome === "added"));
    await client.query("commit");
    assert.equal((await store.get({ ids })).filter((job) => job !== null).length, ids.length);
    // Those that nobody waits for must not be written behind a rollback.
    await client.query("begin");
    const hasty = ["first", "second", "third"].map((id) => store.enqueue({ jobs: [later(id)], tx: client }));
    await client.query("rollback");
    await Promise.allSettled(hasty);
    assert.deepEqual(await store.get({ ids: ["first", "second", "third"] }), [null, null, null]);
    await assert.rejects(Promise.all(hasty.slice(1)), { code: "transaction-unavailable" });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(
      warnings.filter((message) => message.includes("already executing")),
      [],
    );
  });

  test("a snapshot that hides what was committed meanwhile is refused", async () => {
    await client.query("begin isolation level repeatable read");
    const refused = store.enqueue({ jobs: [newJob("hidden")], tx: client });
    await assert.rejects(refused, { code: "transaction-unavailable", message: /READ COMMITTED/ });
    await client.query("rollback");
  });

  test("a long transaction holds up neither the claims of its lane nor the end of its jobs' parents", async () => {
    const names = [{ name: "work", concurrency: 1, rate: null }];
    const params = { claimer: "n", leaseMs: 30_000, limit: 10, queues: null, names, alone: false };
    await store.enqueue({ jobs: [newJob("parent"), newJob("lane-1", { concurrencyKey: "k" })] });
    await client.query("begin");
    const jobs = [newJob("child", { after: ["parent"] }), newJob("lane-2", { concurrencyKey: "k" })];
    await store.enqueue({ jobs, tx: client });
    const claimed = await store.claim({ ...params, sequence: 1 });
    assert.deepEqual(
      claimed.jobs.map(({ id }) => id).toSorted(),
      ["lane-1", "parent"].concat(byLibraries).toSorted(),
    );
    const finishes = claimed.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
    for (const { outcome } of await store.finish({ claimer: "n", finishes }))
      assert.equal(outcome, "written");
    await client.query("commit");
    // The parent ended without seeing its child; the reaper looks at children that came in a transaction.
    await store.reap({ limit: 10 });
    const next = await store.claim({ ...params, sequence: 2 });
    assert.deepEqual(next.jobs.map(({ id }) => id).toSorted(), ["child", "lane-2"]);
  });
});

const byLibraries = ["by Knex", "by Prisma"];
const succeed = { kind: "succeed", result: null } as const;

describe("effectively once on Postgres", () => {
  for (const [name, bed] of Object.entries({ directly: server, "through PgBouncer": pooler })) {
    describe(name, { skip: bed.skip }, () => {
      let store: Store;
      let reader: pg.Client;
      before(async () => {
        store = await open(bed.url, "effects");
        reader = new pg.Client(bed.url);
        await reader.connect();
        await reader.query("create table effects (job text)");
      });
      after(async () => {
        await reader.end();
        await store.close();
      });

      const claim = async (id: string, sequence: number) => {
        await store.enqueue({ jobs: [newJob(id, { delivery: "effectively-once" })] });
        const names = [{ name: "work", concurrency: null, rate: null }];
        const params = { leaseMs: 30_000, limit: 10, queues: null, names, alone: true };
        const { jobs } = await store.claim({ claimer: "n", sequence, ...params });
        const token = jobs.find((job) => job.id === id)?.token ?? 0;
        return {
          claimer: "n",
          id,
          token,
          encode: (value: unknown) => ({ kind: "succeed" as const, result: JSON.stringify(value ?? null) }),
        };
      };
      const write = (id: string) => async (tx: unknown) => {
        const { query } = tx as pg.Client;
        await Reflect.apply(query, tx, ["insert into effects values ($1)", [id]]);
        return "done";
      };
      const effects = async (id: string): Promise<number> =>
        (await reader.query("select 1 from effects where job = $1", [id])).rows.length;

      test("the handle is a client of pg, and its writes commit with the job's success", async () => {
        const held = await claim("a", 1);
        assert.equal((await store.transact({ ...held, run: write("a") })).outcome, "committed");
        assert.deepEqual([await effects("a"), (await store.get({ ids: ["a"] }))[0]?.state], [1, "succeeded"]);
        assert.deepEqual(await store.transact({ ...held, run: write("a") }), { outcome: "stale" });
        assert.equal(await effects("a"), 1);
      });

      test("a claim that ends while its transaction is open takes the writes with it [A7]", async () => {
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
        const run = async (tx: unknown): Promise<void> => {
          await Reflect.apply((tx as pg.Client).query, tx, ["rollback"]);
        };
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
        assert.throws(() => Reflect.apply((kept as pg.Client).query, kept, ["select 1"]), {
          code: "transaction-used",
        });
        await assert.rejects(store.enqueue({ jobs: [newJob("late")], tx: kept }), {
          code: "transaction-used",
        });
      });

      test("more transactions than connections wait for each other, and other calls go on", async () => {
        const names = [{ name: "work", concurrency: null, rate: null }];
        const ids = Array.from({ length: 30 }, (_, n) => `many-${n}`);
        await store.enqueue({ jobs: ids.map((id) => newJob(id)) });
        const { jobs } = await store.claim({
          claimer: "n",
          sequence: 5,
          leaseMs: 30_000,
          limit: 100,
          queues: null,
          names,
          alone: false,
        });
        const run = async (tx: unknown): Promise<void> => {
          await store.health();
          await write("many")(tx);
        };
        const results = await Promise.all(
          jobs
            .filter(({ id }) => ids.includes(id))
            .map(({ id, token }) => store.transact({ claimer: "n", id, token, run, encode: () => succeed })),
        );
        assert.deepEqual(new Set(results.map(({ outcome }) => outcome)), new Set(["committed"]));
        assert.equal(await effects("many"), 30);
      });
    });
  }
});
