import { randomUUID } from "node:crypto";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { mysql } from "../../src/stores/mysql/index.ts";
import { testbed } from "../../testbed/index.ts";
import { median } from "../statistics.ts";
import type { Bed, Durability, Place, RawJob, RawLoop } from "./bed.ts";

/** A private server of the test bed, or the one in ESCAPEMENT_TEST_MYSQL; every measurement has tables of its own. */
export async function mysqlBed(): Promise<Bed> {
  const server = await testbed.mysql();
  if (server.skip !== false) throw new Error(server.skip);
  const { url } = server;
  const isOurs = server.source !== "environment";
  return {
    name: "mysql",
    goals: { drain: 0.4, enqueueConcurrent: 0.25, enqueueMany: 0.4, claimCost: 1.5 },
    async describe(durability) {
      await using client = await connect(url);
      if (isOurs) await setDurability(client, durability);
      const settings = ["innodb_flush_log_at_trx_commit", "log_bin", "innodb_buffer_pool_size"];
      const values = await Promise.all(settings.map((name) => client.value(`select @@${name}`)));
      return {
        engine: `${await client.value("select version()")} (${server.source})`,
        settings: settings.map((name, index) => `${name}=${values[index]}`).join(" "),
        "one commit": `${(await commitMs(client)).toFixed(2)} ms (median of 50, one row)`,
      };
    },
    async open(durability) {
      await using client = await connect(url);
      if (isOurs) await setDurability(client, durability);
      return openPlace(url);
    },
    close: async () => undefined,
  };
}

interface Client extends AsyncDisposable {
  readonly connection: Connection;
  value(sql: string): Promise<string>;
  rows(sql: string): Promise<RowDataPacket[]>;
}

async function connect(url: string): Promise<Client> {
  const connection = await createConnection({ uri: url, multipleStatements: true });
  await connection.query("set session transaction isolation level read committed");
  const rows = async (sql: string): Promise<RowDataPacket[]> =>
    (await connection.query<RowDataPacket[]>(sql))[0];
  return {
    connection,
    rows,
    value: async (sql) => String(Object.values((await rows(sql))[0] ?? {})[0]),
    [Symbol.asyncDispose]: () => connection.end(),
  };
}

/** The server has no such setting for a connection alone. */
async function setDurability({ connection }: Client, durability: Durability): Promise<void> {
  const flush = durability === "full" ? 1 : 2;
  await connection.query(`set global innodb_flush_log_at_trx_commit = ${flush}`);
}

async function openPlace(url: string): Promise<Place> {
  const tablePrefix = `b${randomUUID().slice(0, 8)}_`;
  const options = { url, tablePrefix };
  return {
    store: mysql(options),
    address: { module: import.meta.resolve("../../src/stores/mysql/index.ts"), options },
    openRaw: () => openRaw(url, tablePrefix),
    multiply: (ids, copies) => multiply(url, tablePrefix, ids, copies),
    async [Symbol.asyncDispose]() {
      await using client = await connect(url);
      const tables = await client.rows(
        `select table_name as name from information_schema.tables where table_schema = database() and table_name like '${tablePrefix}%'`,
      );
      const names = tables.map(({ ["name"]: name }) => String(name));
      if (names.length > 0) await client.connection.query(`drop table ${names.join(", ")}`);
    },
  };
}

/** The fastest of the shapes that were tried: one table, whose rows are changed in place, with one index of where they stand. */
const rawSchema = (prefix: string): string => `
  create table ${prefix}raw_jobs (
    id varbinary(64) not null primary key, queue varbinary(64) not null, priority int not null, run_at bigint not null,
    state tinyint not null, token int not null, claim int not null, finished_at bigint not null, input longtext not null,
    key raw_due (state, queue, priority, run_at)
  ) engine = innodb`;

const now = "cast(unix_timestamp(now(3)) * 1000 as unsigned)";
const [waiting, active, succeeded] = [0, 1, 2];

export async function openRaw(url: string, prefix: string): Promise<RawLoop> {
  const client = await connect(url);
  const { connection } = client;
  await connection.query(rawSchema(prefix));
  const table = `${prefix}raw_jobs`;
  let claims = 0;
  const trip = async (done: readonly (RawJob & { token: number })[], batch: number): Promise<typeof done> => {
    claims += 1;
    const ids = done.map(({ id }) => connection.escape(id)).join(",");
    const finish = `update ${table} set state = ${succeeded}, finished_at = ${now} where id in (${ids}) and state = ${active};`;
    const [results] = await connection.query<RowDataPacket[][]>(
      `start transaction; ${done.length === 0 ? "" : finish}
       update (select id from ${table} where state = ${waiting} and queue = 'default' and run_at <= ${now}
         order by priority, run_at limit ${batch} for update skip locked) as c straight_join ${table} as j on j.id = c.id
       set j.state = ${active}, j.token = j.token + 1, j.claim = ${claims};
       select cast(id as char) as id, token, input from ${table} where state = ${active} and queue = 'default' and claim = ${claims};
       commit`,
    );
    return (results[results.length - 2] ?? []) as unknown as typeof done;
  };
  return {
    async insert(jobs, chunk) {
      for (let start = 0; start < jobs.length; start += chunk) {
        const rows = jobs
          .slice(start, start + chunk)
          .map(({ id, input }) => `('${id}','default',0,@now,${waiting},0,0,0,${connection.escape(input)})`);
        await connection.query(`set @now = ${now}; insert into ${table} values ${rows.join(",")}`);
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
        (await client.rows(
          `select cast(id as char) as id, input from ${table} where state = ${waiting} and queue = 'default' and run_at <= ${now}
           order by priority, run_at limit ${batch}`,
        )) as unknown as RawJob[];
      let trips = 1;
      for (let jobs = await next(); jobs.length > 0; jobs = await next()) {
        await run(jobs);
        const ids = jobs.map(({ id }) => connection.escape(id)).join(",");
        await connection.query(`delete from ${table} where id in (${ids})`);
        trips += 2;
      }
      return trips;
    },
    async count() {
      const count = async (condition: string): Promise<number> =>
        Number(await client.value(`select count(*) from ${table} where ${condition}`));
      return { left: await count(`state <> ${succeeded}`), finished: await count(`state = ${succeeded}`) };
    },
    close: async () => {
      await client[Symbol.asyncDispose]();
    },
  };
}

async function multiply(url: string, prefix: string, ids: readonly string[], copies: number): Promise<void> {
  await using client = await connect(url);
  const columns = await client.rows(
    `select column_name as name from information_schema.columns
     where table_schema = database() and table_name = '${prefix}jobs' and column_name <> 'seq'`,
  );
  const names = columns.map(({ ["name"]: name }) => String(name));
  const times = new Set(["run_at", "fire_at", "at"]);
  const values = names.map((name) => {
    if (name === "id") return "concat(id, '-', n)";
    return times.has(name) ? `${name} + n` : name;
  });
  const [{ affectedRows }] = (await client.connection.query(
    `insert into ${prefix}jobs (${names.join(", ")})
     select ${values.join(", ")} from ${prefix}jobs cross join (${numbersTo(copies)}) as numbers where id in (?)`,
    [ids],
  )) as unknown as [{ affectedRows: number }];
  const all = ids.length * copies;
  if (affectedRows !== all) throw new Error(`expected ${all} copies, got ${affectedRows}`);
  if (ids.length === 1) await multiplyLane(client, prefix, ids[0] ?? "");
  await client.connection.query(`analyze table ${prefix}jobs`);
}

/** The numbers from 1 on as a table, put together from digits: what else makes them differs between MySQL and MariaDB. */
function numbersTo(last: number): string {
  const digits = Array.from({ length: 10 }, (_, digit) => `select ${digit} as digit`).join(" union all ");
  const places = Array.from({ length: String(last).length }, (_, place) => place);
  const value = places.map((place) => `${10 ** place} * d${place}.digit`).join(" + ");
  const tables = places.map((place) => `(${digits}) as d${place}`).join(" cross join ");
  return `select ${value} as n from ${tables} having n between 1 and ${last}`;
}

/** Copies of a job with a key stand in its lane, as it does. */
async function multiplyLane({ connection }: Client, prefix: string, id: string): Promise<void> {
  await connection.query(
    `insert into ${prefix}lane_jobs (job, ns, place, lane, urgency, run_at, queue, name)
     select j.seq, l.ns, l.place, l.lane, l.urgency, j.run_at, l.queue, l.name
     from ${prefix}jobs as first join ${prefix}lane_jobs as l on l.job = first.seq
     join ${prefix}jobs as j on j.concurrency_key = first.concurrency_key and j.seq <> first.seq
     where first.id = ?`,
    [id],
  );
}

async function commitMs({ connection }: Client): Promise<number> {
  await connection.query("create table if not exists commit_probe (n int primary key)");
  const times: number[] = [];
  for (let n = 0; n < 50; n += 1) {
    const since = performance.now();
    await connection.query(`insert into commit_probe values (${n})`);
    times.push(performance.now() - since);
  }
  await connection.query("drop table commit_probe");
  return median(times);
}
