import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { migrationSql, type PostgresOptions, postgres } from "./index.ts";
import { functionsFor } from "./schema/functions.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();

function open(options: PostgresOptions): Promise<Store> {
  return postgres(options).open({ namespace: "n", clock: systemClock, log: silentLogger });
}

describe("the schema of the Postgres store", { skip: server.skip }, () => {
  let client: pg.Client;
  before(async () => {
    client = new pg.Client(server.url);
    await client.connect();
  });
  after(() => client.end());

  test("several nodes that start at once make it once", async () => {
    const schema = newSchema();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open({ url: server.url, schema })));
    await Promise.all(stores.map((store) => store.migrate()));
    const { rows } = await client.query(`select version from ${schema}.migrations`);
    assert.deepEqual(rows, [{ version: 1 }]);
    for (const store of stores) await store.close();
  });

  test("the printed SQL makes it as migrate does", async () => {
    const schema = newSchema();
    await client.query(migrationSql(schema));
    const store = await open({ url: server.url, schema });
    assert.deepEqual(await store.pendingMigrations(), []);
    await store.migrate();
    assert.equal((await store.enqueue({ jobs: [newJob("a")] }))[0]?.outcome, "added");
    assert.deepEqual((await store.health()).problems, []);
    await store.close();
  });

  test("what is pending is printed, and nothing works before it is run", async () => {
    const schema = newSchema();
    const store = await open({ url: server.url, schema });
    const pending = await store.pendingMigrations();
    const functions = functionsFor(schema).schema;
    assert.deepEqual(
      pending.map(({ name }) => name),
      ["0001-core.sql", functions],
    );
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), {
      code: "store-unmigrated",
      message: /escapement migrate/,
    });
    for (const { sql } of pending) await client.query(sql);
    assert.deepEqual(await store.pendingMigrations(), []);
    await store.close();
  });

  test("a newer schema that breaks old nodes is refused, another newer one is not", async () => {
    const schema = newSchema();
    const first = await open({ url: server.url, schema });
    await first.migrate();
    const add = (version: number, breaking: boolean): Promise<unknown> =>
      client.query(`insert into ${schema}.migrations (version, name, breaking) values ($1, $2, $3)`, [
        version,
        `000${version}-later.sql`,
        breaking,
      ]);
    await add(2, false);
    const second = await open({ url: server.url, schema });
    await second.migrate();
    await second.enqueue({ jobs: [newJob("a")] });
    await add(3, true);
    const refusal = { code: "store-newer", message: /version 3 \(0003-later\.sql\).*upgrade escapement/ };
    await assert.rejects(open({ url: server.url, schema }), refusal);
    await assert.rejects(first.migrate(), refusal);
    await first.close();
    await second.close();
  });

  test("a missing index and weak settings are told, each with what to do", async () => {
    const schema = newSchema();
    const pool = new pg.Pool({ connectionString: server.url, max: 4, options: "-csynchronous_commit=off" });
    const store = await open({ pool, schema });
    await store.migrate();
    await client.query(`drop index ${schema}.jobs_lane`);
    const { problems, details } = await store.health();
    assert.equal(store.capabilities.durability, "weak");
    assert.equal(details["synchronous_commit"], "off");
    assert.match(problems.join("\n"), /index jobs_lane is missing[\s\S]*synchronous_commit is off/);
    await store.close();
    assert.equal((await pool.query("select 1 as one")).rows[0].one, 1, "a caller's pool stays open");
    await pool.end();
  });

  test("a server whose transactions are frozen snapshots is refused", async () => {
    const pool = new pg.Pool({
      connectionString: server.url,
      max: 2,
      options: "-cdefault_transaction_isolation=serializable",
    });
    await assert.rejects(open({ pool }), { code: "store-unsupported", message: /read committed/ });
    await pool.end();
  });

  test("options that cannot be meant are refused", () => {
    const url = "postgres://localhost/x";
    for (const [options, message] of [
      [{}, /either a url or a pool/],
      ["mysql://localhost", /postgres:\/\//],
      [{ url, schema: "public" }, /a separate schema/],
      [{ url, schema: 'a"b' }, /a separate schema/],
      [{ url, conections: 3 }, /unknown option "conections"/],
      [{ url, connections: 1 }, /from 2 to 1000/],
      [{ url, listen: "yes" }, /true or false/],
    ] as const) {
      assert.throws(() => postgres(options as PostgresOptions), { code: "invalid-option", message });
    }
  });
});
