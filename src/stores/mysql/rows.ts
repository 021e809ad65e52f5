import { type Delivery, deliveries, type JobState, jobStates } from "../../job.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { StoredJob } from "../../store/jobs.ts";
import { type CheckedColumn, instantOf, withPlaceholders } from "../../unreadable.ts";
import type { Tuple } from "./connection/link.ts";
import { fixed } from "./connection/sql.ts";

/** What a dispatch needs, of escapement_jobs as j. */
export const claimedColumns = fixed(
  "j.seq, j.id, j.name, j.queue, j.delivery, j.priority, j.tags, j.run_at, j.fire_at, j.enqueued_at, j.attempt, " +
    "j.attempts, j.crashes, j.max_crashes, j.redrives, j.token, j.schedule, j.input, j.cancel_requested",
);

/** What `get` and `list` show, of escapement_jobs as j and escapement_claimers as c. */
export const storedColumns = fixed(
  `${claimedColumns.strings[0]}, j.state, j.reason, j.result, j.error, j.progress, j.expire_at, j.rollbacks, ` +
    "j.version, c.name as claimer_name, j.claimed_at, if(j.state in ('succeeded', 'dead', 'lost', 'cancelled'), j.at, null), " +
    "j.concurrency_key, j.rate_key, j.slot, j.relayed",
);

/** The row is not what this library writes. `node:assert` would cost more than the reading itself. */
function unexpected(what: string, value: unknown): never {
  throw new TypeError(`expected ${what} in this column, got ${typeof value}`);
}

export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Buffer.isBuffer(value) ? value.toString("utf8") : unexpected("a string", value);
}

/** A caller's connection may be set to return large numbers as strings. */
export function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  const number =
    typeof value === "string" || typeof value === "bigint" ? Number(value) : unexpected("a number", value);
  return Number.isFinite(number) ? number : unexpected("a number", value);
}

export function textOrNull(value: unknown): string | null {
  return value === null ? null : textOf(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : numberOf(value);
}

export function dateOf(value: unknown): Date {
  return instantOf(numberOf(value));
}

export function dateOrNull(value: unknown): Date | null {
  return value === null ? null : dateOf(value);
}

const states = new Map<string, JobState>(jobStates.map((state) => [state, state]));
const deliveriesByName = new Map<string, Delivery>(deliveries.map((delivery) => [delivery, delivery]));

function knownState(value: unknown): JobState {
  return states.get(textOf(value)) ?? unexpected("the state of a job", value);
}

function knownDelivery(value: unknown): Delivery {
  return deliveriesByName.get(textOf(value)) ?? unexpected("a delivery guarantee", value);
}

/** A job in an unknown state counts as ended: no worker will ever take it. */
export function stateOf(value: unknown): JobState {
  return states.get(textOf(value)) ?? "dead";
}

/** An unknown guarantee is read as the strictest one, so its job is never dispatched twice. */
export function deliveryOf(value: unknown): Delivery {
  return deliveriesByName.get(textOf(value)) ?? "at-most-once";
}

function tagsOf(value: unknown): string[] {
  if (value === null) return [];
  const list: unknown = JSON.parse(textOf(value));
  return Array.isArray(list) ? list.map((item: unknown) => String(item)) : unexpected("a JSON list", list);
}

/** The columns of {@link storedColumns} that may hold an unreadable value. Those of {@link claimedColumns} come first in both. */
const checked: readonly CheckedColumn<Tuple[number]>[] = [
  { place: 4, field: "delivery", read: knownDelivery, placeholder: "at-most-once" },
  { place: 6, field: "tags", read: tagsOf, placeholder: null },
  { place: 19, field: "state", read: ifRead(knownState), placeholder: "dead" },
];

/** A claimed row ends before these columns. */
function ifRead(read: (cell: unknown) => unknown): (cell: unknown) => unknown {
  return (cell) => (cell === undefined ? undefined : read(cell));
}

/** The job's place in enqueue order: the first of {@link claimedColumns}. */
export function seqOf(row: Tuple): number {
  return numberOf(row[0]);
}

/** From {@link claimedColumns}. An unreadable job does not affect the others. */
export function toClaimedJob(row: Tuple): ClaimedJob {
  try {
    return readClaimed(row);
  } catch {
    const patched = withPlaceholders(row, checked);
    return { ...readClaimed(patched.row), unreadable: patched.unreadable };
  }
}

function readClaimed(row: Tuple): ClaimedJob {
  return {
    id: textOf(row[1]),
    name: textOf(row[2]),
    queue: textOf(row[3]),
    delivery: knownDelivery(row[4]),
    priority: numberOf(row[5]),
    tags: tagsOf(row[6]),
    runAt: dateOf(row[7]),
    fireAt: dateOf(row[8]),
    enqueuedAt: dateOf(row[9]),
    attempt: numberOf(row[10]),
    attempts: numberOf(row[11]),
    crashes: numberOf(row[12]),
    maxCrashes: numberOf(row[13]),
    redrives: numberOf(row[14]),
    token: numberOf(row[15]),
    schedule: textOrNull(row[16]),
    input: textOf(row[17]),
    cancelRequested: numberOf(row[18]) !== 0,
  };
}

/** From {@link storedColumns}. */
export function toStoredJob(row: Tuple, waitsFor: readonly string[]): StoredJob {
  try {
    return readStored(row, waitsFor);
  } catch {
    const patched = withPlaceholders(row, checked);
    return { ...readStored(patched.row, waitsFor), unreadable: patched.unreadable };
  }
}

function readStored(row: Tuple, waitsFor: readonly string[]): StoredJob {
  const claimedAt = numberOf(row[28]);
  return {
    ...readClaimed(row),
    state: knownState(row[19]),
    reason: textOrNull(row[20]),
    result: textOrNull(row[21]),
    error: textOrNull(row[22]),
    progress: textOrNull(row[23]),
    expireAt: dateOrNull(row[24]),
    rollbacks: numberOf(row[25]),
    version: numberOf(row[26]),
    claimer: textOrNull(row[27]),
    claimedAt: claimedAt === 0 ? null : instantOf(claimedAt),
    finishedAt: dateOrNull(row[29]),
    concurrencyKey: textOrNull(row[30]),
    rateKey: textOrNull(row[31]),
    slot: numberOf(row[32]),
    relayed: numberOf(row[33]) !== 0,
    waitsFor,
  };
}
