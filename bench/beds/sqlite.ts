import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { median } from "../statistics.ts";
import type { Bed, Durability, Place, RawJob, RawLoop } from "./bed.ts";

/** Files in a folder of their own under `parent`, which should be on the disk that real data would be on. */
export function sqliteBed(parent: string): Bed {
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(resolve(parent), "bench-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  let places = 0;
  return {
    name: "sqlite",
    goals: { drain: 0.4, enqueueConcurrent: 0.4, enqueueMany: 0.4, claimCost: 1.5 },
    async describe(durability) {
      return {
        engine: `SQLite ${process.versions["sqlite"]} (node:sqlite)`,
        settings: `journal_mode=wal synchronous=${durability}`,
        folder: parent,
        "one fdatasync": `${syncMs(folder).toFixed(2)} ms (median of 50, after a write of 64 KiB)`,
      };
    },
    async open(durability) {
      places += 1;
      const own = join(folder, String(places));
      mkdirSync(own);
      return openPlace(own, durability);
    },
    async close() {
      process.off("exit", remove);
      remove();
    },
  };
}

function openPlace(folder: string, durability: Durability): Place {
  const path = join(folder, "jobs.db");
  const options = { path, durability };
  return {
    store: sqlite(options),
    address: { module: import.meta.resolve("../../src/stores/sqlite/index.ts"), options },
    openRaw: () => openRaw(join(folder, "raw.db"), durability),
    multiply: async (ids, copies) => multiply(path, ids, copies),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function openDatabase(path: string, durability: Durability): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal; pragma synchronous = ${durability}; pragma cache_size = -16000`);
  return database;
}

/** The fastest of the shapes that were tried: one B-tree by id, batches as JSON, one index of what is due. */
const rawSchema = `
  create table raw_jobs (
    id text primary key, queue text not null, priority integer not null, run_at integer not null, state text not null,
    token integer not null, input text not null
  ) strict, without rowid;
  create index raw_due on raw_jobs (queue, priority desc, run_at) where state = 'waiting';
  create table raw_history (
    id text primary key, queue text not null, priority integer not null, run_at integer not null, state text not null,
    token integer not null, input text not null, finished_at integer not null
  ) strict, without rowid;`;

const rawInsert = `insert into raw_jobs (id, queue, priority, run_at, state, token, input)
  select value ->> 0, 'default', 0, ?1, 'waiting', 0, value ->> 1 from json_each(?2)`;

const rawClaim = `update raw_jobs set state = 'active', token = token + 1 where id in (
    select id from raw_jobs where queue = 'default' and state = 'waiting' and run_at <= ?
    order by priority desc, run_at limit ?)
  returning id, token, input`;

const rawArchive = `insert into raw_history
  select jobs.id, queue, priority, run_at, 'succeeded', token, input, ?2 from json_each(?1) as done
  cross join raw_jobs as jobs on jobs.id = done.value ->> 0 and token = done.value ->> 1 and state = 'active'`;
const rawDelete = "delete from raw_jobs where id in (select value ->> 0 from json_each(?))";

const rawDue = `select id, input from raw_jobs where queue = 'default' and state = 'waiting' and run_at <= ?
  order by priority desc, run_at limit ?`;
const rawForget = "delete from raw_jobs where id in (select value from json_each(?))";

export async function openRaw(path: string, durability: Durability): Promise<RawLoop> {
  const database = openDatabase(path, durability);
  database.exec(rawSchema);
  const insert = database.prepare(rawInsert);
  const claim = database.prepare(rawClaim);
  const archive = database.prepare(rawArchive);
  const remove = database.prepare(rawDelete);
  const due = database.prepare(rawDue);
  const forget = database.prepare(rawForget);
  const next = (batch: number): RawJob[] => due.all(Date.now(), batch) as unknown as RawJob[];
  const inTransaction = <T>(work: () => T): T => {
    database.exec("begin immediate");
    const value = work();
    database.exec("commit");
    return value;
  };
  const trip = (done: readonly (RawJob & { token: number })[], batch: number): typeof done =>
    inTransaction(() => {
      if (done.length > 0) {
        const claims = JSON.stringify(done.map(({ id, token }) => [id, token]));
        archive.run(claims, Date.now());
        remove.run(claims);
      }
      return claim.all(Date.now(), batch) as unknown as typeof done;
    });
  return {
    async insert(jobs, chunk) {
      for (let start = 0; start < jobs.length; start += chunk) {
        const rows = jobs.slice(start, start + chunk).map(({ id, input }) => [id, input]);
        inTransaction(() => insert.run(Date.now(), JSON.stringify(rows)));
      }
    },
    async drain(batch, run) {
      let trips = 1;
      for (let claimed = trip([], batch); claimed.length > 0; claimed = trip(claimed, batch)) {
        for (const job of claimed) run(job);
        trips += 1;
      }
      return trips;
    },
    async sweep(batch, run) {
      let trips = 1;
      for (let jobs = next(batch); jobs.length > 0; jobs = next(batch)) {
        await run(jobs);
        const ids = JSON.stringify(jobs.map(({ id }) => id));
        inTransaction(() => forget.run(ids));
        trips += 2;
      }
      return trips;
    },
    async count() {
      const sql = `select (select count(*) from raw_jobs) as left,
        (select count(*) from raw_history where state = 'succeeded') as finished`;
      const row = database.prepare(sql).get();
      return { left: Number(row?.["left"]), finished: Number(row?.["finished"]) };
    },
    close: async () => database.close(),
  };
}

function multiply(path: string, ids: readonly string[], copies: number): void {
  const database = openDatabase(path, "normal");
  try {
    const given = JSON.stringify(ids);
    const columns = database
      .prepare("select name from pragma_table_info('escapement_jobs')")
      .all()
      .map((row) => String(row["name"]))
      .filter((name) => name !== "seq");
    const value = (column: string): string => {
      if (column === "id") return "id || '-' || n";
      return column === "run_at" || column === "fire_at" ? `${column} + n` : column;
    };
    const last = Number(database.prepare("select max(seq) as last from escapement_jobs").get()?.["last"]);
    const { changes } = database
      .prepare(
        `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?2)
         insert into escapement_jobs (${columns.join(", ")})
         select ${columns.map(value).join(", ")} from escapement_jobs cross join numbers
         where id in (select value from json_each(?1))`,
      )
      .run(given, copies);
    const all = ids.length * copies;
    if (Number(changes) !== all) throw new Error(`expected ${all} copies, got ${changes}`);
    const added = "from escapement_jobs where seq > ?";
    database.prepare(`insert into escapement_open (seq, ns) select seq, ns ${added}`).run(last);
    database
      .prepare(
        `insert into escapement_plain (ns, queue, name, priority, run_at, seq)
         select ns, queue, name, priority, run_at, seq ${added} order by 1, 2, 3, 4 desc, 5, 6`,
      )
      .run(last);
    database.exec("pragma wal_checkpoint(truncate)");
  } finally {
    database.close();
  }
}

function syncMs(folder: string): number {
  const path = join(folder, "sync");
  const file = openSync(path, "w");
  const page = Buffer.alloc(64 * 1024, 1);
  const times = Array.from({ length: 50 }, () => {
    const since = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - since;
  });
  closeSync(file);
  rmSync(path);
  return median(times);
}
