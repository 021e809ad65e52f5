import { outsideParents } from "../../all-or-none.ts";
import { EscapementError } from "../../errors.ts";
import type { EnqueueResult, NewJob } from "../../store.ts";
import { newTail, rareOf } from "./record.ts";
import { type Space, spread } from "./space.ts";
import { orInfinite, Reader, Writer } from "./wire.ts";

/** How many jobs one script takes: it holds up everybody else meanwhile. */
const maxPerCall = 1_000;

export async function enqueue(
  space: Space,
  jobs: readonly NewJob[],
  allOrNone: boolean,
): Promise<EnqueueResult[]> {
  for (const job of jobs) checkPlace(space, job, space.placeOf(job.id));
  if (allOrNone) return enqueueAllOrNone(space, jobs);
  return spread(
    space,
    jobs,
    ({ id }) => space.placeOf(id),
    (part, index) => enqueueIn(space, part, index),
  );
}

/** A batch is one script; a huge one is several, so that nobody waits long behind it. */
async function enqueueIn(space: Space, jobs: readonly NewJob[], index: number): Promise<EnqueueResult[]> {
  const results: EnqueueResult[] = [];
  for (let start = 0; start < jobs.length; start += maxPerCall) {
    const part = jobs.slice(start, start + maxPerCall);
    const answer = new Reader(await space.text("enqueue", index, part.length, jobFrames(part)));
    for (const { id } of part) results.push(readResult(answer, id));
  }
  return results;
}

/** One script, which looks at all parents before it writes anything. */
async function enqueueAllOrNone(space: Space, jobs: readonly NewJob[]): Promise<EnqueueResult[]> {
  const [first] = jobs;
  if (first === undefined) return [];
  const outside = outsideParents(jobs)
    .map((parents, place) => ({ place: place + 1, parents }))
    .filter(({ parents }) => parents.length > 0);
  const asked = outside.length === 0 ? "" : JSON.stringify(outside);
  const text = await space.text("enqueue", space.placeOf(first.id), jobs.length, jobFrames(jobs), asked);
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

/** Refuses what would have to look into another Redis slot. */
export function checkPlace(space: Space, job: NewJob, place: number): void {
  if (space.slots === 1) return;
  const refuse = (what: string): never => {
    throw new EscapementError(
      "store-unsupported",
      `job ${JSON.stringify(job.id)} ${what}; on a Redis namespace that is spread over ${space.slots} slots these must have the same {tag} in their ids, or leave it to one slot`,
    );
  };
  for (const parent of job.after) {
    if (space.placeOf(parent) !== place)
      refuse(`waits for ${JSON.stringify(parent)}, which lies in another slot`);
  }
  if (space.placeOf(job.id) !== place) refuse("lies in another slot than its schedule");
  if (job.relayed && space.placeOfSlot(job.slot) !== place) refuse(`lies in another slot than ${job.slot}`);
  if (job.unique !== null || job.debounce !== null) refuse("has a unique or debounce key");
  if (job.concurrencyKey !== null || job.rateKey !== null) refuse("has a concurrency or rate key");
}

/** Frames of jobs as lua/shared/enqueue.lua reads them: what jobs have in common is a kind, and written once. */
export class JobFrames {
  /** Where frames go, among others that the caller writes. */
  readonly writer = new Writer();
  readonly #kinds = new Writer();
  readonly #numbers = new Map<string, number>();
  /** The last plain job, and its kind: the next one is mostly like it. */
  #last: { readonly job: NewJob; readonly number: number } | null = null;

  /** Jobs that follow each other are one run where they have their kind and time in common. */
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

  /** A run of its own. */
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
      .u8(job.delivery === "at-most-once" ? 1 : 0)
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

/** What ties a job to others, as JSON; nothing for most. */
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
