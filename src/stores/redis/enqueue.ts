import { EscapementError } from "../../errors.ts";
import { neverAhead } from "../../state.ts";
import { outsideParents } from "../../store/all-or-none.ts";
import type { EnqueueParams, EnqueueResult, NewJob } from "../../store/jobs.ts";
import { orInfinite, Reader, Writer } from "./connection/wire.ts";
import { newTail, rareOf } from "./rows.ts";
import { type Session, spread } from "./session.ts";

/** How many jobs one script takes: it blocks all other calls while it runs. */
const maxPerCall = 1_000;

export async function enqueue(
  session: Session,
  { jobs, allOrNone, follows }: EnqueueParams,
): Promise<EnqueueResult[]> {
  for (const job of jobs) checkPlace(session, job, session.placeOf(job.id));
  if (allOrNone) {
    await follows;
    return enqueueAllOrNone(session, jobs);
  }
  return spread(
    session,
    jobs,
    ({ id }) => session.placeOf(id),
    (part, index) => enqueueIn(session, part, index, follows),
  );
}

/** A batch is one script; a huge one is several, so no call waits long behind it. */
async function enqueueIn(
  session: Session,
  jobs: readonly NewJob[],
  index: number,
  follows: Promise<unknown> | undefined,
): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = [];
  for (let start = 0; start < jobs.length; start += maxPerCall) {
    const part = jobs.slice(start, start + maxPerCall);
    const frames = jobFrames(part);
    if (start === 0) await follows;
    const answer = new Reader(await session.text("enqueue", index, part.length, frames));
    for (const { id } of part) results.push(readResult(answer, id));
  }
  return results;
}

/** One script, which checks all parents before it writes anything. */
async function enqueueAllOrNone(session: Session, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  const [first] = jobs;
  if (first === undefined) return [];
  const outside = outsideParents(jobs)
    .map((parents, place) => ({ place: place + 1, parents }))
    .filter(({ parents }) => parents.length > 0);
  const asked = outside.length === 0 ? "" : JSON.stringify(outside);
  const text = await session.text("enqueue", session.placeOf(first.id), jobs.length, jobFrames(jobs), asked);
  const answer = new Reader(text);
  return jobs.map(({ id }) => readResult(answer, id));
}

function readResult(answer: Reader, id: string): EnqueueResult {
  switch (answer.u8()) {
    case 1:
      return { id, outcome: "added" };
    case 2:
      return { id, outcome: "existing" };
    case 3:
      return { id: answer.short(), outcome: "existing" };
    case 4:
      return { id: answer.short(), outcome: "absorbed" };
    case 5:
      return { id: answer.short(), outcome: "debounced" };
    case 6:
      return { id, outcome: "refused", parent: answer.short() };
    default:
      return { id, outcome: "refused" };
  }
}

/** Refuses jobs that would need another Redis slot. */
export function checkPlace(session: Session, job: NewJob, place: number): void {
  if (session.slots === 1) return;
  const refuse = (what: string): never => {
    throw new EscapementError(
      "store-unsupported",
      `job ${JSON.stringify(job.id)} ${what}; on a Redis namespace that is spread over ${session.slots} slots these must have the same {tag} in their ids, or use a namespace with one slot`,
    );
  };
  for (const parent of job.after) {
    if (session.placeOf(parent) !== place)
      refuse(`waits for ${JSON.stringify(parent)}, which is in another slot`);
  }
  if (session.placeOf(job.id) !== place) refuse("is in another slot than its schedule");
  if (job.relayed && session.placeOfSlot(job.slot) !== place) refuse(`is in another slot than ${job.slot}`);
  if (job.unique !== null || job.debounce !== null) refuse("has a unique or debounce key");
  if (job.concurrencyKey !== null || job.rateKey !== null) refuse("has a concurrency or rate key");
}

/** Frames of jobs as lua/shared/enqueue.lua reads them: what jobs have in common is a kind, and written once. */
export class JobFrames {
  /** Where frames go, along with others that the caller writes. */
  readonly writer = new Writer();
  readonly #kinds = new Writer();
  readonly #numbers = new Map<string, number>();
  /** The last plain job, and its kind: the next one is mostly like it. */
  #last: { readonly job: NewJob; readonly number: number } | null = null;

  /** Consecutive jobs with the same kind and time form one run. */
  addAll(jobs: readonly NewJob[]): void {
    for (let from = 0; from < jobs.length; ) {
      const first = jobs[from] as NewJob;
      const kind = this.#kindOf(first);
      let to = from + 1;
      for (; to < jobs.length; to += 1) {
        const next = jobs[to] as NewJob;
        const isSameTime = next.delayMs === first.delayMs && next.runAt === first.runAt;
        if (!isSameTime || this.#kindOf(next) !== kind) break;
      }
      this.#addRun(kind, jobs.slice(from, to));
      from = to;
    }
  }

  /** A run of one job. */
  add(job: NewJob): void {
    this.#addRun(this.#kindOf(job), [job]);
  }

  #addRun(kind: number, jobs: readonly NewJob[]): void {
    const [first] = jobs;
    if (first === undefined) return;
    this.writer.u32(kind).f64(orInfinite(first.runAt)).f64(first.delayMs).u32(jobs.length);
    for (const job of jobs) {
      this.writer.u16(job.slot).long(job.input);
      const bound = boundOf(job);
      if (bound !== "") this.writer.long(bound);
    }
  }

  #kindOf(job: NewJob): number {
    const last = this.#last;
    const isBound = job.after.length > 0 || job.unique !== null || job.debounce !== null;
    const rare = rareOf(job);
    if (isBound || rare !== null) return this.#numberOf(job, rare, isBound);
    if (last !== null && isAlike(job, last.job)) return last.number;
    const number = this.#numberOf(job, rare, isBound);
    this.#last = { job, number };
    return number;
  }

  /** Kinds first, then what the caller puts between, then the frames. */
  toBuffer(between: Buffer = Buffer.alloc(0)): Buffer {
    const count = new Writer().u32(this.#numbers.size).toBuffer();
    return Buffer.concat([count, this.#kinds.toBuffer(), between, this.writer.toBuffer()]);
  }

  #numberOf(job: NewJob, rare: object | null, isBound: boolean): number {
    const { expireInMs, fireAt, priority, maxCrashes, relayed } = job;
    const parts = [
      job.queue,
      job.name,
      job.delivery,
      job.attempts,
      priority,
      maxCrashes,
      expireInMs,
      relayed,
      isBound,
    ];
    const key = `${parts.join("\u001f")}${fireAt === null ? "" : fireAt.getTime()}${rare === null ? "" : JSON.stringify(rare)}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const tail = newTail(job, rare);
    this.#kinds
      .f64(orInfinite(expireInMs))
      .f64(orInfinite(fireAt))
      .i32(priority)
      .u16(maxCrashes)
      .u8(relayed ? 1 : 0)
      .u8(job.concurrencyKey === null && job.rateKey === null ? 0 : 1)
      .u8(isBound ? 1 : 0)
      .u8(job.retention === null ? 0 : 1)
      .u8(neverAhead.includes(job.delivery) ? 1 : 0)
      .u32(tail.length)
      .bytes(tail);
    this.#numbers.set(key, this.#numbers.size);
    return this.#numbers.size - 1;
  }
}

/** Whether two plain jobs are of one kind. */
function isAlike(a: NewJob, b: NewJob): boolean {
  return (
    a.name === b.name &&
    a.queue === b.queue &&
    a.delivery === b.delivery &&
    a.attempts === b.attempts &&
    a.priority === b.priority &&
    a.maxCrashes === b.maxCrashes &&
    a.expireInMs === b.expireInMs &&
    a.relayed === b.relayed &&
    a.fireAt === null &&
    b.fireAt === null
  );
}

function jobFrames(jobs: readonly NewJob[]): Buffer {
  const [ids, frames] = [new Writer(), new JobFrames()];
  for (const { id } of jobs) ids.short(id);
  frames.addAll(jobs);
  return frames.toBuffer(ids.toBuffer());
}

/** What ties a job to others, as JSON; empty for most. */
function boundOf({ after, unique, debounce }: NewJob): string {
  if (after.length === 0 && unique === null && debounce === null) return "";
  return JSON.stringify({
    ...(after.length > 0 ? { after } : {}),
    ...(unique === null
      ? {}
      : { unique: { key: unique.key, ...(unique.forMs === null ? {} : { forMs: unique.forMs }) } }),
    ...(debounce === null
      ? {}
      : {
          debounce: {
            key: debounce.key,
            waitMs: debounce.waitMs,
            ...(debounce.maxMs === null ? {} : { maxMs: debounce.maxMs }),
          },
        }),
  });
}
