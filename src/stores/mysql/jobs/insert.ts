import { randomBytes } from "node:crypto";
import type { NewJob } from "../../../store/jobs.ts";
import { laneOf } from "../../lane.ts";
import { shelfOf } from "../../shelf.ts";
import { type Dialect, fixed, join, now, render, renderNumber, type Sql, sql } from "../connection/sql.ts";
import type { Session } from "../session.ts";
import { encodeKept } from "./kept.ts";

/** Whether only its id can keep it from being added: such jobs are written together. */
export function isIndependent(job: NewJob): boolean {
  return job.unique === null && job.debounce === null && job.after.length === 0;
}

/** Tags the rows that a call adds, to distinguish them from existing ones. */
export function newTag(): number {
  return randomBytes(6).readUIntBE(0, 6);
}

/** What most jobs have; the other columns have defaults. */
const plainColumns = fixed(
  "ns, id, state, line, urgency, at, born, name, queue, delivery, priority, run_at, fire_at, enqueued_at, attempts, max_crashes, slot, input",
);
const allColumns = fixed(
  `${plainColumns.strings[0]}, relayed, expire_at, concurrency_key, rate_key, unique_key, unique_ms, after_failure, schedule, kept_succeeded, kept_cancelled, kept_dead, kept_lost, tags`,
);

export function isPlain(job: NewJob): boolean {
  return (
    isIndependent(job) &&
    job.concurrencyKey === null &&
    job.rateKey === null &&
    job.expireInMs === null &&
    job.schedule === null &&
    job.retention === null &&
    job.tags.length === 0 &&
    job.afterFailure === "cancel" &&
    !job.relayed
  );
}

/** An instant that is given, or counted from the store's now. */
function runAtOf(job: NewJob): Sql {
  if (job.debounce !== null) return sql`${now} + ${job.debounce.waitMs}`;
  if (job.runAt !== null) return sql`${job.runAt.getTime()}`;
  return job.delayMs === 0 ? now : sql`${now} + ${job.delayMs}`;
}

function lineOf({ lines }: Session, job: NewJob, state: "waiting" | "blocked"): number {
  if (state === "blocked") return lines.common("blocked");
  const shelf = shelfOf({ ...job, crashes: 0, lane: laneOf(job) });
  if (shelf === "relay") return lines.inSlot("relay", job.slot);
  return shelf === "lane" ? lines.common("lane") : lines.waiting(shelf, job.queue, job.name);
}

function plainValues(session: Session, job: NewJob, tag: number, state: "waiting" | "blocked"): Sql {
  const runAt = runAtOf(job);
  const fireAt = job.fireAt === null ? runAt : job.fireAt.getTime();
  const line = lineOf(session, job, state);
  const plain = state === "waiting" && !job.relayed && job.concurrencyKey === null && job.rateKey === null;
  return sql`${session.ns}, ${job.id}, ${state}, ${line}, ${plain ? -job.priority : 0}, ${runAt}, ${tag}, ${job.name},
    ${job.queue}, ${job.delivery}, ${job.priority}, ${runAt}, ${fireAt}, ${now}, ${job.attempts}, ${job.maxCrashes}, ${job.slot}, ${job.input}`;
}

function allValues(session: Session, job: NewJob, tag: number, state: "waiting" | "blocked"): Sql {
  const expireAt = job.expireInMs === null ? null : sql`${runAtOf(job)} + ${job.expireInMs}`;
  const tags = job.tags.length === 0 ? null : JSON.stringify(job.tags);
  const forMs = job.unique?.forMs ?? null;
  const kept = job.retention;
  return sql`${plainValues(session, job, tag, state)}, ${job.relayed}, ${expireAt}, ${job.concurrencyKey}, ${job.rateKey},
    ${job.unique?.key ?? null}, ${forMs}, ${job.afterFailure}, ${job.schedule}, ${encodeKept(kept?.succeededMs)},
    ${encodeKept(kept?.cancelledMs)}, ${encodeKept(kept?.deadMs)}, ${encodeKept(kept?.lostMs)}, ${tags}`;
}

/** Maximum number of rows in one statement, and about how many bytes of inputs. */
const maxRows = 1_000;
const maxBytes = 512 * 1024;

/** A statement, and the jobs that it inserts. */
interface Insert {
  readonly statement: Sql;
  readonly jobs: readonly NewJob[];
}

/** Statements that insert jobs whose ids may be taken. Existing rows stay as they are. The caller counts what they added. */
export function insertStatements(session: Session, jobs: readonly NewJob[], tag: number): Insert[] {
  const inserts: Insert[] = [];
  const plain = jobs.every(isPlain);
  for (let start = 0; start < jobs.length; ) {
    const end = endOfChunk(jobs, start);
    const chunk = jobs.slice(start, end);
    const rows = plain
      ? (dialect: Dialect): string => plainRows(session, chunk, tag, dialect)
      : join(
          chunk.map((job) => sql`(${allValues(session, job, tag, "waiting")})`),
          ",",
        );
    inserts.push({
      statement: sql`insert into escapement_jobs (${plain ? plainColumns : allColumns}) values ${rows} on duplicate key update seq = seq`,
      jobs: chunk,
    });
    start = end;
  }
  return inserts;
}

/** The rows of plain jobs, in column order. What many of them have in common is written once. */
function plainRows(session: Session, jobs: readonly NewJob[], tag: number, dialect: Dialect): string {
  const instant = render(now, dialect);
  const common = new Map<string, { readonly line: number; readonly text: string }>();
  const commonOf = ({ queue, name, delivery }: NewJob): { line: number; text: string } => {
    const key = `${delivery}\n${queue}\n${name}`;
    const known = common.get(key);
    if (known !== undefined) return known;
    const text = `${dialect.text(name)},${dialect.text(queue)},${dialect.text(delivery)}`;
    const made = { line: session.lines.waiting("plain", queue, name), text };
    common.set(key, made);
    return made;
  };
  const rows = jobs.map((job) => {
    const { line, text } = commonOf(job);
    const { priority, delayMs, attempts, maxCrashes, slot } = job;
    const delayed = delayMs === 0 ? instant : `${instant}+${renderNumber(delayMs)}`;
    const runAt = job.runAt === null ? delayed : renderNumber(job.runAt.getTime());
    const fireAt = job.fireAt === null ? runAt : renderNumber(job.fireAt.getTime());
    return (
      `(${session.ns},${dialect.text(job.id)},'waiting',${line},${renderNumber(-priority)},${runAt},${tag},${text},` +
      `${renderNumber(priority)},${runAt},${fireAt},${instant},${renderNumber(attempts)},${renderNumber(maxCrashes)},` +
      `${renderNumber(slot)},${dialect.text(job.input)})`
    );
  });
  return rows.join(",");
}

function endOfChunk(jobs: readonly NewJob[], start: number): number {
  let bytes = 0;
  let end = start;
  for (let job = jobs[end]; job !== undefined && end - start < maxRows && bytes < maxBytes; job = jobs[end]) {
    bytes += job.input.length;
    end += 1;
  }
  return end;
}

/** Inserts one job of any kind; fails if its id is taken. Returns its seq. */
export async function insertOne(
  session: Session,
  job: NewJob,
  state: "waiting" | "blocked",
): Promise<number> {
  const { insertId } = await session.link.query(
    sql`insert into escapement_jobs (${allColumns}) values (${allValues(session, job, 0, state)})`,
  );
  return insertId;
}

const laneColumn = fixed(
  "if(concurrency_key is null, concat('rate ', rate_key), concat('concurrency ', concurrency_key))",
);

/**
 * The companion rows of jobs that this call added: their place in a lane, and on the list of those that expire. A call that is repeated
 * after a lost reply finds both there already.
 */
export function writeCompanions(session: Session, jobs: readonly NewJob[], added: Sql): void {
  const { link, ns } = session;
  const laned = jobs.filter((job) => laneOf(job) !== null && !job.relayed);
  if (laned.length > 0) {
    const mine = sql`escapement_jobs where ns = ${ns} and id in (${laned.map(({ id }) => id)}) and state = 'waiting' and ${added}`;
    link.write(
      sql`insert into escapement_lane_jobs (job, ns, place, lane, urgency, run_at, queue, name)
        select seq, ns, 'waiting', ${laneColumn}, -priority, run_at, queue, name from ${mine}
        on duplicate key update job = values(job)`,
    );
    link.write(
      sql`insert into escapement_hints (ns, kind, lane, queue, name, at)
        select ns, 'arrived', ${laneColumn} as lane, queue, name, min(run_at) from ${mine} group by ns, lane, queue, name`,
    );
  }
  const expiring = jobs.filter(({ expireInMs }) => expireInMs !== null);
  if (expiring.length > 0) {
    link.write(
      sql`insert into escapement_expiring (ns, expire_at, job)
        select ns, expire_at, seq from escapement_jobs
        where ns = ${ns} and id in (${expiring.map(({ id }) => id)}) and ${added}
        on duplicate key update job = values(job)`,
    );
  }
}
