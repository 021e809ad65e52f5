import { type Delivery, deliveries, type JobFacts, type JobState, jobStates } from "../../job.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { NewJob, Retention, StoredJob } from "../../store/jobs.ts";
import type { DueJob } from "../../store/partitions.ts";
import { instantOf } from "../../unreadable.ts";
import { type Reader, Writer } from "./connection/wire.ts";

/** Rare fields of a job, stored as JSON at the end of its record. The scripts know these names, too. */
interface Rare {
  tags?: readonly string[];
  schedule?: string;
  concurrencyKey?: string;
  rateKey?: string;
  uniqueKey?: string;
  debounceKey?: string;
  runAfterFailure?: true;
  /** How long it is kept after its end, in milliseconds, if it has its own retention. */
  kept?: { readonly [state in JobState]?: number };
  reason?: string;
  error?: string;
  progress?: string;
  /** The rest could not be read. The scripts leave this mark if they overwrote it. */
  unreadable?: true;
}

const noRare: Rare = {};

/** What is unknown of a job whose rare part cannot be read. */
const rareFields: readonly string[] = [
  "tags",
  "schedule",
  "concurrencyKey",
  "rateKey",
  "reason",
  "error",
  "progress",
];

function readRare(text: string): Rare {
  try {
    const rare: unknown = JSON.parse(text);
    if (isRare(rare)) return rare;
  } catch {
    // Handled below.
  }
  return { unreadable: true };
}

/** Only the fields read here are checked; the rest is for the scripts. */
function isRare(value: unknown): value is Rare {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { tags, ...texts }: Record<string, unknown> = { ...value };
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === "string")))
    return false;
  return rareFields.every((field) => texts[field] === undefined || typeof texts[field] === "string");
}

/** The scripts number states and deliveries from 1, in the order of these lists. */
export function stateAt(number: number): JobState {
  return jobStates[number - 1] ?? "waiting";
}

export function stateNumber(state: JobState): number {
  return jobStates.indexOf(state) + 1;
}

export function deliveryNumber(delivery: Delivery): number {
  return deliveries.indexOf(delivery) + 1;
}

/** The end of a new job's record, starting at its queue: the same for most jobs of a definition. */
export function newTail(job: NewJob, rare: object | null): Buffer {
  return new Writer()
    .short(job.queue)
    .short(job.name)
    .u8(deliveryNumber(job.delivery))
    .u32(job.attempts)
    .u32(1)
    .u32(0)
    .u32(0)
    .long(rare === null ? "" : JSON.stringify(rare))
    .toBuffer();
}

/** Whether only queue, name, delivery and attempts distinguish this job's tail. */
export function rareOf(job: NewJob): Rare | null {
  const isPlain =
    job.tags.length === 0 &&
    job.schedule === null &&
    job.concurrencyKey === null &&
    job.rateKey === null &&
    job.unique === null &&
    job.debounce === null &&
    job.retention === null &&
    job.after.length === 0;
  if (isPlain) return null;
  return {
    ...(job.tags.length > 0 ? { tags: job.tags } : {}),
    ...(job.schedule === null ? {} : { schedule: job.schedule }),
    ...(job.concurrencyKey === null ? {} : { concurrencyKey: job.concurrencyKey }),
    ...(job.rateKey === null ? {} : { rateKey: job.rateKey }),
    ...(job.unique === null ? {} : { uniqueKey: job.unique.key }),
    ...(job.debounce === null ? {} : { debounceKey: job.debounce.key }),
    ...(job.afterFailure === "run" ? { runAfterFailure: true } : {}),
    ...(job.retention === null ? {} : { kept: keptOf(job.retention) }),
  };
}

function keptOf({ succeededMs, cancelledMs, deadMs, lostMs }: Retention): NonNullable<Rare["kept"]> {
  return {
    ...(succeededMs === null ? {} : { succeeded: succeededMs }),
    ...(cancelledMs === null ? {} : { cancelled: cancelledMs }),
    ...(deadMs === null ? {} : { dead: deadMs }),
    ...(lostMs === null ? {} : { lost: lostMs }),
  };
}

/** What a definition says about its jobs, and rare fields. */
interface Tail {
  readonly queue: string;
  readonly name: string;
  readonly delivery: Delivery;
  readonly attempts: number;
  readonly version: number;
  readonly redrives: number;
  readonly rollbacks: number;
  readonly rare: Rare;
}

/** Decoded tails, by their bytes: most jobs share theirs with many others. */
const tails = new Map<string, Tail>();
const maxTails = 1_000;

function readTail(reader: Reader, bytes: number): Tail {
  const key = reader.key(bytes);
  const known = tails.get(key);
  if (known !== undefined) {
    reader.skip(bytes);
    return known;
  }
  const [queue, name] = [reader.short(), reader.short()];
  const delivery = deliveries[reader.u8() - 1] ?? "at-least-once";
  const [attempts, version, redrives, rollbacks] = [reader.u32(), reader.u32(), reader.u32(), reader.u32()];
  const text = reader.long();
  const rare = text === "" ? noRare : readRare(text);
  const tail = { queue, name, delivery, attempts, version, redrives, rollbacks, rare };
  if (tails.size >= maxTails) tails.clear();
  // Rare fields differ from job to job.
  if (text === "") tails.set(key, tail);
  return tail;
}

/** The rest of a job as the scripts keep it (lua/shared/record.lua), decoded. */
interface Rest {
  readonly isApart: boolean;
  readonly seq: number;
  readonly slot: number;
  readonly relayed: boolean;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly priority: number;
  readonly runAt: Date;
  readonly fireAt: Date;
  readonly enqueuedAt: Date;
  readonly expireAt: Date | null;
  readonly tail: Tail;
  /** Empty if it is stored separately. */
  readonly input: string;
}

/** @param end where the rest of this job ends. */
function readRest(reader: Reader, end: number): Rest {
  const isApart = (reader.u8() & 1) === 1;
  const [seq, slot] = [reader.u48(), reader.u16()];
  const relayed = reader.u8() === 1;
  // Keys, children, aliases and a trail are for the scripts.
  reader.skip(4);
  const [crashes, maxCrashes, priority] = [reader.u16(), reader.u16(), reader.i32()];
  const runAt = instantOf(reader.f64());
  const fireAt = instantOf(reader.f64());
  const enqueuedAt = instantOf(reader.f64());
  const expireAt = reader.date();
  const tail = readTail(reader, reader.u32());
  if (reader.position > end) throw new RangeError("the record is cut short");
  const input = reader.text(end - reader.position);
  return {
    isApart,
    seq,
    slot,
    relayed,
    crashes,
    maxCrashes,
    priority,
    runAt,
    fireAt,
    enqueuedAt,
    expireAt,
    tail,
    input,
  };
}

function factsOf(id: string, attempt: number, token: number, rest: Rest): JobFacts {
  const { tail } = rest;
  const { rare } = tail;
  return {
    id,
    name: tail.name,
    queue: tail.queue,
    delivery: tail.delivery,
    priority: rest.priority,
    tags: rare.tags ?? [],
    runAt: rest.runAt,
    fireAt: rest.fireAt,
    enqueuedAt: rest.enqueuedAt,
    attempt,
    attempts: tail.attempts,
    crashes: rest.crashes,
    maxCrashes: rest.maxCrashes,
    redrives: tail.redrives,
    token,
    schedule: rare.schedule ?? null,
    ...(rare.unreadable === undefined ? {} : { unreadable: rareFields }),
  };
}

/** Whether its cancel is requested, attempt, token, and how long its id and rest are. */
const standBytes = 15;

/**
 * The jobs of a claim: the state of each, then id and rest of each, then the inputs stored separately. A truncated record is left
 * out: its claim runs out, and no other claimer has it then.
 */
export function readClaimedList(stands: Reader, count: number): ClaimedJob[] {
  const jobs: ClaimedJob[] = [];
  const apart: { input: string }[] = [];
  const reader = stands.from(stands.position + count * standBytes);
  for (let n = 0; n < count; n += 1) {
    const cancelRequested = stands.u8() === 1;
    const [attempt, token, idBytes, restBytes] = [stands.u32(), stands.u32(), stands.u16(), stands.u32()];
    const id = reader.text(idBytes);
    const end = reader.position + restBytes;
    const isApart = (reader.peek() & 1) === 1;
    const rest = readRestOrNull(reader, end);
    reader.position = end;
    const job =
      rest === null
        ? { input: "" }
        : { ...factsOf(id, attempt, token, rest), input: rest.input, cancelRequested };
    if (isApart) apart.push(job);
    if ("id" in job) jobs.push(job);
  }
  for (const job of apart) job.input = reader.long();
  return jobs;
}

function readRestOrNull(reader: Reader, end: number): Rest | null {
  try {
    return readRest(reader, end);
  } catch {
    return null;
  }
}

/** A job that the relay has named, in one text; none if it cannot be read. */
export function readClaimed(reader: Reader): ClaimedJob[] {
  const id = reader.short();
  const cancelRequested = reader.u8() === 1;
  const [attempt, token] = [reader.u32(), reader.u32()];
  const rest = readRestWithin(reader);
  const apart = reader.long();
  if (rest === null) return [];
  const input = rest.isApart ? apart : rest.input;
  return [{ ...factsOf(id, attempt, token, rest), input, cancelRequested }];
}

/** A rest with its length before it; whatever is in it, the reader is behind it then. */
function readRestWithin(reader: Reader): Rest | null {
  const bytes = reader.u32();
  const end = reader.position + bytes;
  const rest = readRestOrNull(reader, end);
  reader.position = end;
  return rest;
}

/** Id, attempt, token and rest; null if it cannot be read. */
export function readDue(reader: Reader): DueJob | null {
  const own = reader.short();
  const [attempt, token] = [reader.u32(), reader.u32()];
  const rest = readRestWithin(reader);
  if (rest === null) return null;
  const { id, name, queue, delivery, runAt } = factsOf(own, attempt, token, rest);
  return { id, name, queue, delivery, runAt, token, version: rest.tail.version };
}

/** A job with its place in enqueue order. */
export interface FoundJob {
  readonly seq: number;
  readonly job: StoredJob;
}

export function readStored(reader: Reader): FoundJob {
  const id = reader.short();
  reader.u32();
  const state = stateAt(reader.u8());
  const cancelRequested = reader.u8() === 1;
  // Whether it is special, or was claimed ahead, is for the scripts.
  reader.skip(2);
  const [attempt, token] = [reader.u32(), reader.u32()];
  reader.skip(4);
  const [claimedAt, finishedAt] = [reader.date(), reader.date()];
  // The block, queue and name: the rest has them, too.
  reader.skip(6);
  reader.skip(reader.u16());
  reader.skip(reader.u16());
  const [claimer, result] = [reader.short(), reader.long()];
  const rest = readRest(reader, reader.u32() + reader.position);
  const apart = reader.long();
  const { rare } = rest.tail;
  const waitsFor = Array.from({ length: reader.u16() }, () => reader.short());
  const job = {
    ...factsOf(id, attempt, token, rest),
    state,
    reason: rare.reason ?? null,
    input: rest.isApart ? apart : rest.input,
    result: result === "" ? null : result,
    error: rare.error ?? null,
    progress: rare.progress ?? null,
    expireAt: rest.expireAt,
    rollbacks: rest.tail.rollbacks,
    version: rest.tail.version,
    claimer: claimer === "" ? null : claimer,
    claimedAt,
    finishedAt,
    cancelRequested,
    waitsFor,
    concurrencyKey: rare.concurrencyKey ?? null,
    rateKey: rare.rateKey ?? null,
    relayed: rest.relayed,
    slot: rest.slot,
  };
  return { seq: rest.seq, job };
}
