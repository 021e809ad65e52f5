import { type Delivery, deliveries, type JobFacts, type JobState, jobStates } from "../../job.ts";
import { instantOf } from "../../mend.ts";
import type { ClaimedJob, DueJob, NewJob, Retention, StoredJob } from "../../store.ts";
import { Reader, Writer } from "./wire.ts";

/** What few jobs have, kept as JSON at the end of their record. The scripts know these names, too. */
interface Rare {
  tags?: readonly string[];
  schedule?: string;
  concurrencyKey?: string;
  rateKey?: string;
  uniqueKey?: string;
  debounceKey?: string;
  runAfterFailure?: true;
  /** How long it is kept after its end, in milliseconds, where that is its own to say. */
  kept?: { readonly [state in JobState]?: number };
  reason?: string;
  error?: string;
  progress?: string;
  /** The rest could not be read. The scripts leave this mark where they wrote over it. */
  unreadable?: true;
}

const noRare: Rare = {};

/** What is not known of a job whose rare part cannot be read. */
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
    // Told below.
  }
  return { unreadable: true };
}

/** Only what is read here is looked at; the rest is for the scripts. */
function isRare(value: unknown): value is Rare {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { tags, ...texts }: Record<string, unknown> = { ...value };
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === "string")))
    return false;
  return rareFields.every((field) => texts[field] === undefined || typeof texts[field] === "string");
}

/** The scripts count states and deliveries from 1, in the order of these lists. */
export function stateAt(number: number): JobState {
  return jobStates[number - 1] ?? "waiting";
}

export function stateNumber(state: JobState): number {
  return jobStates.indexOf(state) + 1;
}

export function deliveryNumber(delivery: Delivery): number {
  return deliveries.indexOf(delivery) + 1;
}

/** The end of a new job's record, from its queue on: the same for most jobs of a definition. */
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

/** Whether nothing but queue, name, delivery and attempts sets this job's tail apart. */
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

/** A record as the scripts keep it (lua/shared/record.lua), taken apart. */
interface Parts {
  readonly seq: number;
  readonly facts: JobFacts;
  readonly input: string;
  readonly state: JobState;
  readonly cancelRequested: boolean;
  readonly relayed: boolean;
  readonly slot: number;
  readonly expireAt: Date | null;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly claimer: string;
  readonly result: string;
  readonly version: number;
  readonly rollbacks: number;
  readonly rare: Rare;
}

/** Id, record and input of one job, in one text. */
function readParts(reader: Reader): Parts {
  const id = reader.short();
  reader.u32();
  return { ...readRecord(id, reader), input: reader.long() };
}

function readRecord(id: string, reader: Reader): Omit<Parts, "input"> {
  const state = stateAt(reader.u8());
  const cancelRequested = reader.u8() === 1;
  // Whether it is special, or was claimed ahead, is for the scripts.
  reader.u16();
  const attempt = reader.u32();
  const token = reader.u32();
  reader.u32();
  const claimedAt = reader.date();
  const finishedAt = reader.date();
  const claimer = reader.short();
  const result = reader.long();
  const relayed = reader.u8() === 1;
  // So are keys, children, aliases and a trail.
  reader.u32();
  const crashes = reader.u16();
  const maxCrashes = reader.u16();
  const slot = reader.u16();
  const seq = reader.u48();
  const priority = reader.i32();
  const runAt = instantOf(reader.f64());
  const fireAt = instantOf(reader.f64());
  const enqueuedAt = instantOf(reader.f64());
  const expireAt = reader.date();
  const queue = reader.short();
  const name = reader.short();
  const delivery = deliveries[reader.u8() - 1] ?? "at-least-once";
  const attempts = reader.u32();
  const version = reader.u32();
  const redrives = reader.u32();
  const rollbacks = reader.u32();
  const rareText = reader.long();
  const rare = rareText === "" ? noRare : readRare(rareText);
  const facts: JobFacts = {
    id,
    name,
    queue,
    delivery,
    priority,
    tags: rare.tags ?? [],
    runAt,
    fireAt,
    enqueuedAt,
    attempt,
    attempts,
    crashes,
    maxCrashes,
    redrives,
    token,
    schedule: rare.schedule ?? null,
    ...(rare.unreadable === undefined ? {} : { unreadable: rareFields }),
  };
  return {
    seq,
    facts,
    state,
    cancelRequested,
    relayed,
    slot,
    expireAt,
    claimedAt,
    finishedAt,
    claimer,
    result,
    version,
    rollbacks,
    rare,
  };
}

/** The same in three texts that follow each other. Null for a record that is cut short: its claim runs out, and no other has it then. */
export function claimedFrom(parts: readonly Buffer[], index: number): ClaimedJob | null {
  const id = String(parts[index]);
  try {
    const { facts, cancelRequested } = readRecord(id, new Reader(parts[index + 1] ?? Buffer.alloc(0)));
    return { ...facts, input: String(parts[index + 2]), cancelRequested };
  } catch {
    return null;
  }
}

export function readClaimed(reader: Reader): ClaimedJob {
  const { facts, input, cancelRequested } = readParts(reader);
  return { ...facts, input, cancelRequested };
}

/** Id and record, without the input. */
export function readDue(reader: Reader): DueJob {
  const own = reader.short();
  reader.u32();
  const { facts, version } = readRecord(own, reader);
  const { id, name, queue, delivery, runAt, token } = facts;
  return { id, name, queue, delivery, runAt, token, version };
}

/** A job with its place in the order of enqueueing. */
export interface FoundJob {
  readonly seq: number;
  readonly job: StoredJob;
}

export function readStored(reader: Reader): FoundJob {
  const parts = readParts(reader);
  const { facts, rare } = parts;
  const waitsFor = Array.from({ length: reader.u16() }, () => reader.short());
  const job = {
    ...facts,
    state: parts.state,
    reason: rare.reason ?? null,
    input: parts.input,
    result: parts.result === "" ? null : parts.result,
    error: rare.error ?? null,
    progress: rare.progress ?? null,
    expireAt: parts.expireAt,
    rollbacks: parts.rollbacks,
    version: parts.version,
    claimer: parts.claimer === "" ? null : parts.claimer,
    claimedAt: parts.claimedAt,
    finishedAt: parts.finishedAt,
    cancelRequested: parts.cancelRequested,
    waitsFor,
    concurrencyKey: rare.concurrencyKey ?? null,
    rateKey: rare.rateKey ?? null,
    relayed: parts.relayed,
    slot: parts.slot,
  };
  return { seq: parts.seq, job };
}
