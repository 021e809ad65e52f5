import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { ClaimResult } from "../../store/claims.ts";
import type { Store } from "../../store/store.ts";
import { die, newJob, succeed } from "../../testing/conformance/scene.ts";
import { until } from "../../testing/until.ts";
import type { PgPool } from "./connection/client.ts";
import { Link } from "./connection/link.ts";
import { functionFiles } from "./functions/files.ts";
import { postgres } from "./index.ts";
import { type Functions, functionsFor } from "./schema/functions.ts";
import { openPostgresStore } from "./store.ts";
import { assertBooks } from "./test/bookkeeping.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();
const pooler = await testbed.pgbouncer();

const context = { namespace: "n", clock: systemClock, log: silentLogger };

/** The functions of a library that says in the reason of each job that it ends by which version it was. */
function versionOf(schema: string, version: string): Functions {
  const files = Object.entries(functionFiles).map(([name, sql]) => [
    name,
    sql.replace(
      /create function end_job\([\s\S]*?\nbegin\n/,
      `$&  p_job.reason := p_job.reason || ' (${version})';\n`,
    ),
  ]);
  const functions = functionsFor(schema, Object.fromEntries(files));
  assert.notEqual(functions.schema, functionsFor(schema).schema);
  return functions;
}

/** A handle of a library with these functions. */
function openWith(url: string, schema: string, functions: Functions): Promise<Store> {
  const pool: PgPool = new pg.Pool({ connectionString: url, max: 3 });
  return openPostgresStore({
    link: new Link({ pool, owned: true, callTimeoutMs: 60_000, place: "under test" }),
    context,
    schema,
    functions,
    clock: null,
    address: null,
    capabilities: {
      transactions: true,
      listen: false,
      acrossSlots: true,
      timePrecisionMs: 1,
      durability: "full",
    },
    transactions: 1,
  });
}

async function openMigrated(url: string, schema: string, functions = functionsFor(schema)): Promise<Store> {
  const store = await openWith(url, schema, functions);
  await store.migrate();
  return store;
}

function claim(store: Store, claimer: string, sequence: number, limit = 5): Promise<ClaimResult> {
  const names = [{ name: "work", concurrency: null, rate: null }];
  return store.claim({ claimer, sequence, leaseMs: 60_000, limit, alone: false, queues: null, names });
}

/** Claims until nothing is left; every other job dies. Returns the ids, with how each ended. */
async function workOff(store: Store, claimer: string): Promise<Map<string, "succeeded" | "dead">> {
  const ended = new Map<string, "succeeded" | "dead">();
  for (let sequence = 1; ; sequence += 1) {
    const { jobs } = await claim(store, claimer, sequence);
    if (jobs.length === 0) return ended;
    const finishes = jobs.map(({ id, token }, n) => ({ id, token, outcome: n % 2 === 0 ? succeed : die }));
    const results = await store.finish({ claimer, finishes });
    for (const [n, { outcome, state }] of results.entries()) {
      assert.equal(outcome, "written");
      assert(state === "succeeded" || state === "dead");
      ended.set(jobs[n]?.id ?? "", state);
    }
  }
}

describe("the functions of the Postgres store", { skip: server.skip }, () => {
  let admin: pg.Client;
  before(async () => {
    admin = new pg.Client(server.url);
    await admin.connect();
  });
  after(() => admin.end());

  const installed = async (schema: string): Promise<string[]> => {
    const { rows } = await admin.query<{ name: string }>(
      "select nspname::text as name from pg_namespace where starts_with(nspname::text, $1) order by 1",
      [`${schema}_fn_`],
    );
    return rows.map(({ name }) => name);
  };
  const age = (schema: string, { schema: name }: Functions, days: number): Promise<unknown> =>
    admin.query(
      `update ${schema}.function_versions set used_at = now() - $2 * interval '1 day' where name = $1`,
      [name, days],
    );

  for (const [way, bed] of [
    ["straight", server],
    ["through PgBouncer in transaction mode", pooler],
  ] as const) {
    test(`an old and a new node work side by side on one set of tables, ${way}`, {
      skip: bed.skip,
    }, async () => {
      const schema = newSchema();
      const older = await openMigrated(bed.url, schema, versionOf(schema, "older"));
      await older.enqueue({ jobs: Array.from({ length: 100 }, (_, n) => newJob(`o${n}`)) });
      const newer = await openMigrated(bed.url, schema, versionOf(schema, "newer"));
      await newer.enqueue({ jobs: Array.from({ length: 100 }, (_, n) => newJob(`n${n}`)) });
      // Each has claimed jobs while the other works.
      const held = await Promise.all([claim(older, "a", 1), claim(newer, "b", 1)]);
      assert.deepEqual(
        held.map(({ jobs }) => jobs.length),
        [5, 5],
      );
      const [byOlder, byNewer] = await Promise.all([workOff(older, "c"), workOff(newer, "d")]);
      assert.equal(byOlder.size + byNewer.size, 190, "each job once");
      for (const [ended, version] of [
        [byOlder, "older"],
        [byNewer, "newer"],
      ] as const) {
        const jobs = await newer.get({ ids: [...ended.keys()] });
        for (const job of jobs) {
          assert(job !== null);
          assert.equal(job.state, ended.get(job.id));
          if (job.state === "dead") assert.equal(job.reason, `no use (${version})`);
        }
      }
      // One cancels what the other holds, and ends what the other enqueued.
      const [first] = held[0].jobs;
      assert(first !== undefined);
      await newer.cancel({ select: { ids: [first.id] }, reason: "enough" });
      const finishes = [{ id: first.id, token: first.token, outcome: die }];
      assert.equal((await older.finish({ claimer: "a", finishes }))[0]?.state, "cancelled");
      assert.equal((await newer.get({ ids: [first.id] }))[0]?.reason, "enough (older)");
      await older.close();
      await newer.close();
    });
  }

  test("nodes of two versions that start at once install each of them once", async () => {
    const schema = newSchema();
    const versions = [versionOf(schema, "older"), functionsFor(schema)];
    const stores = await Promise.all(
      Array.from({ length: 6 }, (_, n) => openMigrated(server.url, schema, versions[n % 2])),
    );
    assert.deepEqual(await installed(schema), versions.map(({ schema: name }) => name).toSorted());
    for (const [n, store] of stores.entries()) {
      assert.equal((await store.enqueue({ jobs: [newJob(`j${n}`)] }))[0]?.outcome, "added");
      await store.close();
    }
    await assertBooks(server.url, schema);
  });

  test("a version that nobody has used for a week goes with the next installation; the others stay", async () => {
    const schema = newSchema();
    const [unused, used, next] = [versionOf(schema, "1"), versionOf(schema, "2"), versionOf(schema, "3")];
    const stores = await Promise.all(
      [unused, used].map((functions) => openMigrated(server.url, schema, functions)),
    );
    await age(schema, unused, 8);
    await age(schema, used, 6);
    const last = await openMigrated(server.url, schema, next);
    assert.deepEqual(await installed(schema), [used.schema, next.schema].toSorted());
    const [gone, kept] = stores;
    assert.equal((await kept?.enqueue({ jobs: [newJob("a")] }))?.[0]?.outcome, "added");
    await assert.rejects(async () => gone?.enqueue({ jobs: [newJob("b")] }), {
      code: "store-unavailable",
      message: /call migrate\(\)/,
    });
    await gone?.migrate();
    assert.equal((await gone?.enqueue({ jobs: [newJob("b")] }))?.[0]?.outcome, "added");
    for (const store of [...stores, last]) await store.close();
  });

  test("a process that uses its functions notes it, also where it runs no node", async () => {
    const schema = newSchema();
    const functions = functionsFor(schema);
    await (await openMigrated(server.url, schema)).close();
    await age(schema, functions, 6);
    const store = await openWith(server.url, schema, functions);
    await store.get({ ids: ["a"] });
    await until("the use is noted", async () => {
      const { rows } = await admin.query(
        `select used_at > now() - interval '1 hour' as noted from ${schema}.function_versions`,
      );
      return rows[0]?.noted === true;
    });
    await store.close();
  });

  test("a start where everything is current makes one trip and waits for no lock", async () => {
    const schema = newSchema();
    await (await openMigrated(server.url, schema)).close();
    let statements = 0;
    const pool = new pg.Pool({ connectionString: server.url, max: 2 });
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...values: unknown[]) => unknown;
      Object.assign(client, {
        query: (...values: unknown[]) => {
          statements += 1;
          return query(...values);
        },
      });
    });
    await admin.query("begin");
    await admin.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`escapement ${schema}`]);
    const store = await postgres({ pool, schema, listen: false }).open(context);
    statements = 0;
    await store.migrate();
    assert.equal(statements, 1);
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    await admin.query("rollback");
    await store.close();
    await pool.end();
  });

  test("tables that somebody dropped are made again, with their functions", async () => {
    const schema = newSchema();
    await (await openMigrated(server.url, schema)).close();
    await admin.query(`drop schema ${schema} cascade`);
    const store = await openMigrated(server.url, schema);
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    await store.close();
  });

  test("a handle without its functions says so", async () => {
    const schema = newSchema();
    await (await openMigrated(server.url, schema, versionOf(schema, "older"))).close();
    const store = await openWith(server.url, schema, functionsFor(schema));
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), {
      code: "store-unmigrated",
      message: /functions of this version .*escapement migrate/,
    });
    const [pending, ...others] = await store.pendingMigrations();
    assert.deepEqual(others, []);
    await admin.query(pending?.sql ?? "");
    await store.migrate();
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    await store.close();
  });

  test("a user who may not create schemas is told what to do, and works with what another one has installed", async () => {
    const schema = newSchema();
    const role = `test_${randomUUID().slice(0, 8)}`;
    await admin.query(`create role "${role}"`);
    const pool = new pg.Pool({ connectionString: server.url, max: 3, options: `-crole=${role}` });
    try {
      const open = (): Promise<Store> => postgres({ pool, schema, listen: false }).open(context);
      const first = await open();
      await assert.rejects(first.migrate(), {
        code: "store-unmigrated",
        message: new RegExp(`may not create the schema ${schema},.*escapement migrate --dry-run`),
      });
      await first.close();
      await admin.query(`create schema ${schema} authorization "${role}"`);
      const second = await open();
      await assert.rejects(second.migrate(), {
        code: "store-unmigrated",
        message: new RegExp(`may not create the schema ${schema}_fn_`),
      });
      await second.close();
      await admin.query(`drop schema ${schema}; create schema ${schema}; grant usage on schema ${schema} to "${role}";
        alter default privileges in schema ${schema} grant select, insert, update, delete on tables to "${role}";
        alter default privileges in schema ${schema} grant usage on sequences to "${role}"`);
      await (await openMigrated(server.url, schema)).close();
      const store = await open();
      await store.migrate();
      await store.enqueue({ jobs: [newJob("a"), newJob("b")] });
      assert.equal((await workOff(store, "c")).size, 2);
      assert.equal((await store.get({ ids: ["b"] }))[0]?.state, "dead");
      await store.close();
    } finally {
      await pool.end();
      await admin.query(`drop schema if exists ${schema}, ${functionsFor(schema).schema} cascade`);
      await admin.query(`drop owned by "${role}"; drop role "${role}"`);
    }
  });
});
