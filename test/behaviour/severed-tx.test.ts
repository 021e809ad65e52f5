import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { FaultProxy } from "../../src/proof/proxy.ts";
import { testbed } from "../../testbed/index.ts";

interface Database {
  query(sql: string): Promise<unknown>;
}

/** Runs statements beside the app, on a way to the server that nobody cuts. */
type Sql = (statement: string) => Promise<readonly unknown[]>;

const connectTo = {
  async postgres(url: string): Promise<Sql & AsyncDisposable> {
    const client = new pg.Client(url);
    await client.connect();
    const sql: Sql = async (statement) => (await client.query(statement)).rows;
    return Object.assign(sql, { [Symbol.asyncDispose]: () => client.end() });
  },
  async mysql(url: string): Promise<Sql & AsyncDisposable> {
    const connection = await createConnection(url);
    const sql: Sql = async (statement) => {
      const [rows] = await connection.query(statement);
      return Array.isArray(rows) ? rows : [];
    };
    return Object.assign(sql, { [Symbol.asyncDispose]: () => connection.end() });
  },
};

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await condition())) {
    assert(performance.now() < deadline, `waited 120 s in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const faults = {
  "connections that are cut": (proxy: FaultProxy) => proxy.cut(),
  "answers that are lost": (proxy: FaultProxy) => proxy.dropReplies(50),
};

for (const kind of ["postgres", "mysql"] as const) {
  const server = await testbed[kind]();
  describe(`tx on ${kind}, on a way that breaks`, { skip: server.skip }, () => {
    for (const [fault, harm] of Object.entries(faults)) {
      test(`${fault} cost no job an attempt, and double no effect [A5, C1]`, async () => {
        const { url } = await testbed[kind]();
        await using sql = await connectTo[kind](url);
        await sql("create table effects (job varchar(100) primary key)");
        await using proxy = await FaultProxy.start(url);
        let inside = 0;
        const job = defineJob<null>({
          name: "pay",
          delivery: "effectively-once",
          async run({ job: { id }, tx }) {
            await tx(async (db: Database) => {
              await db.query(`insert into effects (job) values ('${id}')`);
              inside += 1;
              await db.query("select 1");
            });
          },
        });
        const app = createEscapement({
          store: proxy.url,
          jobs: [job],
          lease: 60_000,
          poll: 100,
          log: silentLogger,
        });
        await using _ = { [Symbol.asyncDispose]: () => app.stop({ timeout: 0 }) };
        const failed: string[] = [];
        app.on("failed", ({ error }) => void failed.push(error.message));
        await app.start();
        const jobs = 60;
        await app.enqueueMany(
          job,
          Array.from({ length: jobs }, () => ({ input: null })),
        );
        for (let round = 1; round <= 8; round += 1) {
          const before = inside;
          await until("handlers are at work", () => inside > before || inside >= jobs);
          harm(proxy);
        }
        proxy.pass();
        await until(
          "all have succeeded",
          async () => (await app.count({ states: ["succeeded"] }).catch(() => 0)) === jobs,
        );
        assert.deepEqual(failed, []);
        assert.equal((await sql("select * from effects")).length, jobs);
        const { jobs: all } = await app.list({}, { limit: 100 });
        for (const { id, attempt } of all) assert.equal(attempt, 1, id);
      });
    }

    test("errors of the caller's own SQL are the handler's, those of the server are not", async () => {
      const { url } = await testbed[kind]();
      await using sql = await connectTo[kind](url);
      await sql("create table effects (job varchar(100) primary key)");
      const thrown: unknown[] = [];
      const killSelf =
        kind === "postgres" ? "select pg_terminate_backend(pg_backend_pid())" : "kill connection_id()";
      const define = (name: string, statements: readonly string[], swallow = false) =>
        defineJob<null>({
          name,
          delivery: "effectively-once",
          retry: { attempts: 1 },
          async run({ tx, job: { token } }) {
            if (token > 1) return;
            await tx(async (db: Database) => {
              for (const statement of statements)
                await db.query(statement).catch((error: unknown) => {
                  thrown.push(error);
                  if (!swallow) throw new Error(`${name} failed`, { cause: error });
                });
            });
          },
        });
      const insert = "insert into effects (job) values ('x')";
      const cases = {
        syntax: { job: define("syntax", ["selec 1"]), state: "dead" },
        duplicate: { job: define("duplicate", [insert, insert]), state: "dead" },
        killed: { job: define("killed", [insert, killSelf]), state: "succeeded" },
        "killed, and swallowed": { job: define("swallowed", [killSelf, insert], true), state: "succeeded" },
      };
      const app = createEscapement({
        store: url,
        jobs: Object.values(cases).map(({ job }) => job),
        poll: 100,
        log: silentLogger,
      });
      await using _ = { [Symbol.asyncDispose]: () => app.stop({ timeout: 0 }) };
      await app.start();
      for (const { job, state } of Object.values(cases)) {
        const { id } = await app.enqueue(job, null);
        await until(`${job.name} has ended`, async () => {
          const now = (await app.get(id))?.state;
          return now === "dead" || now === "succeeded";
        });
        const ended = await app.get(id);
        assert.deepEqual([ended?.state, ended?.attempt], [state, 1], job.name);
      }
      assert.equal(thrown.length, 5);
      assert.equal((await sql("select * from effects")).length, 0);
    });
  });
}
