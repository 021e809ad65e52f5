import { randomUUID } from "node:crypto";
import pg from "pg";
import { postgres } from "../../src/stores/postgres/index.ts";
import { functionsFor } from "../../src/stores/postgres/schema/functions.ts";
import { testbed } from "../../testbed/index.ts";
import { median } from "../statistics.ts";
import type { Bed, Durability, Place, RawJob, RawLoop } from "./bed.ts";

/** A private server of the test bed, or the one in ESCAPEMENT_TEST_POSTGRES; every measurement has a schema of its own. */
export async function postgresBed(): Promise<Bed> {
  const server = await testbed.postgres();
  if (server.skip !== false) throw new Error(server.skip);
  return {
    name: "postgres",
    goals: { drain: 0.4, enqueueConcurrent: 0.25, enqueueMany: 0.4, claimCost: 1.5 },
    async describe(durability) {
      await using client = await connect(urlFor(server.url, durability));
      const settings = ["fsync", "synchronous_commit", "shared_buffers", "wal_level"];
      const values: unknown[] = [];
      for (const name of settings) values.push(await client.value(`show ${name}`));
      return {
        engine: `PostgreSQL ${await client.value("show server_version")} (${server.source})`,
        settings: settings.map((name, index) => `${name}=${values[index]}`).join(" "),
        "one commit": `${(await commitMs(client)).toFixed(2)} ms (median of 50, one row)`,
      };
    },
    open: async (durability) => openPlace(urlFor(server.url, durability)),
    close: async () => undefined,
  };
}

function urlFor(base: string, durability: Durability): string {
  const url = new URL(base);
  if (durability === "normal") url.searchParams.set("options", "-csynchronous_commit=off");
  return url.href;
}

interface Client extends AsyncDisposable {
  readonly pg: pg.Client;
  value(sql: string): Promise<string>;
}

async function connect(url: string): Promise<Client> {
  const client = new pg.Client(url);
  await client.connect();
  return {
    pg: client,
    async value(sql) {
      const { rows } = await client.query<Record<string, unknown>>(sql);
      return String(Object.values(rows[0] ?? {})[0]);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

async function openPlace(url: string): Promise<Place> {
  const schema = `bench_${randomUUID().slice(0, 8)}`;
  const options = { url, schema };
  return {
    store: postgres(options),
    address: { module: import.meta.resolve("../../src/stores/postgres/index.ts"), options },
    openRaw: () => openRaw(url, schema),
    multiply: (ids, copies) => multiply(url, schema, ids, copies),
    async [Symbol.asyncDispose]() {
      await using client = await connect(url);
      await client.pg.query(`drop schema if exists ${schema}, ${functionsFor(schema).schema} cascade`);
    },
  };
}

/** As our own hot table: filled to 80 %, so that updates find room, with one index by id and one of what is due. */
const rawSchema = (schema: string): string => `
  create schema ${schema};
  create table ${schema}.raw_jobs (
    id text collate "C" primary key, queue text not null, priority integer not null, run_at bigint not null, state text not null,
    token integer not null, input text not null
  ) with (fillfactor = 80);
  create index raw_due on ${schema}.raw_jobs (queue, priority desc, run_at) where state = 'waiting';
  create table ${schema}.raw_history (
    id text collate "C" primary key, queue text not null, priority integer not null, run_at bigint not null, state text not null,
    token integer not null, input text not null, finished_at bigint not null
  );`;

const now = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

const rawInsert = (schema: string): string =>
  `insert into ${schema}.raw_jobs (id, queue, priority, run_at, state, token, input)
   select id, 'default', 0, ${now}, 'waiting', 0, input from unnest($1::text[], $2::text[]) as t (id, input)`;

/** Finishes what was run and claims the next, in one trip. */
const rawTrip = (schema: string): string => `
  with done as (
    delete from ${schema}.raw_jobs j using unnest($1::text[], $2::integer[]) as d (id, token)
    where j.id = d.id and j.token = d.token and j.state = 'active' returning j.*
  ), kept as (
    insert into ${schema}.raw_history select id, queue, priority, run_at, 'succeeded', token, input, ${now} from done
  ), next as (
    select id from ${schema}.raw_jobs where queue = 'default' and state = 'waiting' and run_at <= ${now}
    order by priority desc, run_at limit $3 for update skip locked
  )
  update ${schema}.raw_jobs j set state = 'active', token = token + 1 from next where j.id = next.id returning j.id, j.token, j.input`;

const rawDue = (schema: string): string => `
  select id, input from ${schema}.raw_jobs where queue = 'default' and state = 'waiting' and run_at <= ${now}
  order by priority desc, run_at limit $1`;
const rawForget = (schema: string): string => `delete from ${schema}.raw_jobs where id = any ($1::text[])`;

export async function openRaw(url: string, schema: string): Promise<RawLoop> {
  const client = await connect(url);
  await client.pg.query(rawSchema(schema));
  const trip = async (done: readonly (RawJob & { token: number })[], batch: number): Promise<typeof done> => {
    const values = [done.map(({ id }) => id), done.map(({ token }) => token), batch];
    return (await client.pg.query({ name: "trip", text: rawTrip(schema), values })).rows;
  };
  return {
    async insert(jobs, chunk) {
      for (let start = 0; start < jobs.length; start += chunk) {
        const part = jobs.slice(start, start + chunk);
        const values = [part.map(({ id }) => id), part.map(({ input }) => input)];
        await client.pg.query({ name: "insert", text: rawInsert(schema), values });
      }
    },
    async drain(batch, run) {
      let trips = 1;
      for (let claimed = await trip([], batch); claimed.length > 0; claimed = await trip(claimed, batch)) {
        for (const job of claimed) run(job);
        trips += 1;
      }
      return trips;
    },
    async sweep(batch, run) {
      const next = async (): Promise<RawJob[]> =>
        (await client.pg.query<RawJob>({ name: "due", text: rawDue(schema), values: [batch] })).rows;
      let trips = 1;
      for (let jobs = await next(); jobs.length > 0; jobs = await next()) {
        await run(jobs);
        const ids = jobs.map(({ id }) => id);
        await client.pg.query({ name: "forget", text: rawForget(schema), values: [ids] });
        trips += 2;
      }
      return trips;
    },
    async count() {
      const count = async (table: string): Promise<number> =>
        Number(await client.value(`select count(*) from ${schema}.${table}`));
      return { left: await count("raw_jobs"), finished: await count("raw_history") };
    },
    close: async () => {
      await client[Symbol.asyncDispose]();
    },
  };
}

async function multiply(url: string, schema: string, ids: readonly string[], copies: number): Promise<void> {
  await using client = await connect(url);
  const { rows } = await client.pg.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [`${schema}.jobs`],
  );
  const columns = rows.map(({ name }) => name);
  const value = (column: string): string => {
    if (column === "seq") return `nextval('${schema}.job_order') * 1000`;
    if (column === "id") return "id || '-' || n";
    return column === "run_at" || column === "fire_at" ? `${column} + n` : column;
  };
  const { rowCount } = await client.pg.query(
    `insert into ${schema}.jobs (${columns.join(", ")})
     select ${columns.map(value).join(", ")} from ${schema}.jobs cross join generate_series(1, $2::integer) as n where id = any ($1::text[])`,
    [ids, copies],
  );
  const all = ids.length * copies;
  if (rowCount !== all) throw new Error(`expected ${all} copies, got ${rowCount}`);
  await client.pg.query(
    `insert into ${schema}.turns (ns, queue, name, rank, run_at, seq, direct)
     select ns, queue, name, -priority, run_at, seq, false from ${schema}.jobs where state = 'waiting' and shelf is null
     on conflict do nothing`,
  );
  // As tables that had grown in their own time would have been.
  await client.pg.query(`vacuum analyze ${schema}.jobs, ${schema}.turns`);
}

async function commitMs({ pg: client }: Client): Promise<number> {
  await client.query("create table if not exists commit_probe (n integer)");
  const times: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    const since = performance.now();
    await client.query("insert into commit_probe values ($1)", [n]);
    times.push(performance.now() - since);
  }
  await client.query("drop table commit_probe");
  return median(times);
}
