import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { postgres } from "./index.ts";
import { functionsFor } from "./schema/functions.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();

/** Waiting and finished jobs, each; CI takes a million. */
const backlog = Number(process.env["ESCAPEMENT_BACKLOG"] ?? 100_000);

const day = 86_400_000;
const kept = {
  ...{ succeededMs: day, cancelledMs: day, deadMs: day, lostMs: day },
  ...{ nodesMs: day, occurrencesMs: day },
};

/** Copies the jobs of the schema, so that there are many of every kind. */
const copyJobs = (columns: readonly string[]): string => `
  insert into jobs (${columns.join(", ")}) select ${columns
    .map((column) => {
      if (column === "seq") return "nextval('job_order') * 1000";
      if (column === "id") return "id || '-' || n";
      return column === "run_at" ? "run_at + n" : column;
    })
    .join(
      ", ",
    )} from jobs cross join generate_series(1, $1::integer) as n where id in ('waiting', 'later', 'other', 'keyed', 'done', 'routed')`;

const copyEnded = `with copied as (
    insert into ended (seq, finished_at, claimed_at, ns, attempt, token, settled, state, claimer)
    select j.seq, e.finished_at, e.claimed_at, e.ns, e.attempt, e.token, e.settled, e.state, e.claimer
    from jobs j, ended e join jobs o using (seq) where o.id = 'done' and j.id ~ '^done-[0-9]+$' returning seq, ns, finished_at
  ) insert into successes (ns, finished_at, seqs) select ns, finished_at, array[seq] from copied`;

describe("plans on Postgres", { skip: server.skip }, () => {
  const schema = newSchema();
  const functions = functionsFor(schema).schema;
  const plans: string[] = [];
  let pool: pg.Pool;
  let store: Store;
  let admin: pg.Client;
  let sequence = 0;

  /** One session in all, so that its plans are those that were made while the tables were empty. */
  before(async () => {
    admin = new pg.Client(server.url);
    await admin.connect();
    pool = new pg.Pool({ connectionString: server.url, max: 1 });
    pool.on("connect", (client) => {
      client.on("notice", ({ message }) => plans.push(message ?? ""));
    });
    const making = await open();
    await making.migrate();
    await admin.query(`set search_path = ${schema}, ${functions}`);
    // The worst moment to make a plan: everything is known to be empty.
    await admin.query("vacuum analyze");
    store = await open();
    // It looks for work from the start, when there is none.
    await relay("nobody", 0);
    await exercise("before");
    const jobs = [
      newJob("waiting"),
      newJob("later", { delayMs: 3_600_000 }),
      newJob("other", { name: "other" }),
      newJob("keyed", { concurrencyKey: "k" }),
      newJob("done", { queue: "done" }),
      newJob("routed", { queue: "routed", relayed: true, delayMs: 3_600_000 }),
    ];
    await store.enqueue({ jobs });
    await run("done", 1);
    await fill();
  });
  after(async () => {
    await store.close();
    await pool.end();
    await admin.end();
  });

  const open = (): Promise<Store> =>
    postgres({ pool, schema, listen: false, callTimeout: "60s" }).open({
      namespace: "n",
      clock: systemClock,
      log: silentLogger,
    });

  const fill = async (): Promise<void> => {
    const { rows } = await admin.query<{ name: string }>(
      "select attname as name from pg_attribute where attrelid = 'jobs'::regclass and attnum > 0 and not attisdropped",
    );
    await admin.query(copyJobs(rows.map(({ name }) => name)), [backlog]);
    await admin.query(copyEnded);
    await admin.query("select enter_line(seq) from jobs where id ~ '^(waiting|later|other)-[0-9]+$'");
    await admin.query(`create table ${schema}.filled ()`);
  };

  const run = async (queue: string, limit: number) => {
    sequence += 1;
    const { jobs } = await store.claim({
      claimer: "c",
      sequence,
      leaseMs: 60_000,
      limit,
      queues: [{ queue, limit }],
      names: [{ name: "work", concurrency: 1, rate: null }],
      alone: false,
    });
    const claims = jobs.map(({ id, token }) => ({ id, token }));
    await store.extend({ claimer: "c", leaseMs: 60_000, claims });
    const finishes = claims.map((claim) => ({
      ...claim,
      outcome: { kind: "succeed", result: null } as const,
    }));
    await store.finish({ claimer: "c", finishes });
    return jobs;
  };

  /** Every verb of the hot path, on jobs of its own. */
  const exercise = async (prefix: string): Promise<void> => {
    const jobs = Array.from({ length: 20 }, (_, n) =>
      newJob(`${prefix}-${n}`, {
        queue: prefix,
        ...(n % 2 === 0 ? { concurrencyKey: `${prefix}-${n}` } : {}),
      }),
    );
    await store.enqueue({ jobs });
    await store.enqueue({ jobs: jobs.slice(0, 2) });
    // Ids that do not rise, a key that is looked up, and a claim that is unknown.
    const early = [newJob(`a-${prefix}`), newJob(`b-${prefix}`, { unique: { key: prefix, forMs: null } })];
    await store.enqueue({ jobs: early.map((job) => ({ ...job, queue: "early" })) });
    await store.finish({
      claimer: "c",
      finishes: [{ id: "nobody", token: 1, outcome: { kind: "release" } }],
    });
    assert.equal((await run(prefix, 50)).length, 20);
    await store.reap({ limit: 10 });
    await store.prune({ ...kept, limit: 10 });
    await run(prefix, 50);
    await relay(prefix);
  };

  /** What a relay does. */
  const relay = async (prefix: string, many = 20): Promise<void> => {
    const owner = `relay of ${prefix}`;
    const ids = Array.from({ length: many }, (_, n) => `${prefix}-routed-${n}`).toSorted();
    await store.enqueue({
      jobs: ids.map((id, n) => newJob(id, { queue: prefix, relayed: true, slot: n % 100 })),
    });
    const [grant] = await store.acquirePartitions({ owner, leaseMs: 60_000, partitions: 4, want: 1 });
    assert(grant);
    const { partition, epoch } = grant;
    const due = await store.partitionDue({ partition, aheadMs: 0, limit: 500, after: null });
    assert.deepEqual(due.jobs.map(({ id }) => id).toSorted(), ids);
    const rest = { owner, partition, epoch, mark: null, aheadMs: 0 };
    const { named } = await store.checkpoint({ ...rest, settled: [], name: due.jobs });
    const outcome = { kind: "succeed", result: null } as const;
    const settled = named.map(({ id, token }) => ({ id, token, outcome }));
    await store.checkpoint({ ...rest, settled, name: [] });
    await store.releasePartitions({ owner, held: [{ partition, epoch }] });
  };

  test("claims, finishes, enqueues, reaps, prunes and what a relay does read by index, however the tables grew since their plans were made [A2]", async (context) => {
    const loaded = await pool.query("load 'auto_explain'").catch(() => null);
    if (loaded === null) return context.skip("auto_explain cannot be loaded as this user");
    await pool.query("set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on");
    await pool.query("set client_min_messages = log");
    plans.length = 0;
    await exercise("explained");
    await pool.query("set auto_explain.log_min_duration = -1");
    const told = plans.join("\n");
    assert.match(told, /Index (Only )?Scan using turns_pkey/);
    assert.match(told, /Index Scan using jobs_lane/);
    assert.match(told, /Index Scan using gates_ready/);
    assert.match(told, /Scan using gates_pkey on gates .*\n\s*Index Cond: \(\(ns = \$?\w+\) AND \(lane = /);
    assert.doesNotMatch(told, /Scan using gates_\w+ on gates .*\n.*\n\s*Filter: .*lane = /);
    assert.match(told, /Index Scan using jobs_id/);
    assert.match(told, /Index Scan using active_pkey/);
    assert.match(told, /Index (Only )?Scan using jobs_relay/);
    assert.doesNotMatch(
      told,
      /Seq Scan on (jobs|turns|untried|active|claims|ended|successes|gates|arrivals|lanes|parents|trail)/,
    );
    assert.doesNotMatch(told, /Bitmap/);
    // By the namespace alone: that is a whole table.
    assert.doesNotMatch(
      told,
      /Scan using (jobs_id|ended_\w+|successes_\w+) on .*\n\s*Index Cond: \(ns = \$?\w+\)\n/,
    );
  });

  test(`a claim beside ${backlog} jobs of each kind reads as little as beside none`, async () => {
    const names = [{ name: "work", concurrency: 1, rate: null }];
    const ask = async (queues: string, claimer: string): Promise<number> => {
      const values = [claimer, queues, `{${names.map(({ name }) => name).join(",")}}`];
      const { rows } = await pool.query(
        `explain (analyze, buffers, format json) select ${functions}.claim_jobs(
           row(1, null, null, $1::text, 1, 60000, 10, 0, false, true, $2::text::text[], '{10}', $3::text::text[], '{1}', '{null}', '{null}')::${functions}.ask)`,
        values,
      );
      const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
      return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    };
    const jobs = Array.from({ length: 40 }, (_, n) => newJob(`small-${n}`, { queue: "small" }));
    await store.enqueue({ jobs });
    const small = await ask("{small}", "a");
    const large = await ask("{default}", "b");
    assert(large < 3 * small + 200, `read ${large} pages beside the backlog, ${small} beside none`);
  });
});
