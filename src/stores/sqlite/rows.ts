import type { SQLOutputValue } from "node:sqlite";
import { type Delivery, deliveries, type JobState, jobStates } from "../../job.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { StoredJob } from "../../store/jobs.ts";
import { type CheckedColumn, instantOf, withPlaceholders } from "../../unreadable.ts";
import type { Tuple } from "./connection/connection.ts";

/** What a dispatch needs, of escapement_all_jobs. */
export const claimedColumns =
  "seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, attempt, attempts, crashes, " +
  "max_crashes, redrives, token, schedule, input, cancel_requested";

/** What `get` and `list` show, of escapement_all_jobs. */
export const storedColumns =
  `${claimedColumns}, state, reason, result, error, progress, expire_at, rollbacks, version, claimer, claimed_at, ` +
  "finished_at, concurrency_key, rate_key, slot, relayed";

/** The row is not what this library writes. `node:assert` would cost more than the reading itself. */
function unexpected(what: string, value: unknown): never {
  throw new TypeError(`expected ${what} in this column, got ${typeof value}`);
}

export function textOf(value: SQLOutputValue | undefined): string {
  return typeof value === "string" ? value : unexpected("a string", value);
}

export function numberOf(value: SQLOutputValue | undefined): number {
  return typeof value === "number" ? value : unexpected("a number", value);
}

export function textOrNull(value: SQLOutputValue | undefined): string | null {
  return value === null ? null : textOf(value);
}

export function numberOrNull(value: SQLOutputValue | undefined): number | null {
  return value === null ? null : numberOf(value);
}

export function dateOf(value: SQLOutputValue | undefined): Date {
  return instantOf(numberOf(value));
}

export function dateOrNull(value: SQLOutputValue | undefined): Date | null {
  return value === null ? null : dateOf(value);
}

const states = new Map<unknown, JobState>(jobStates.map((state) => [state, state]));
const deliveriesByName = new Map<unknown, Delivery>(deliveries.map((delivery) => [delivery, delivery]));

function knownState(value: SQLOutputValue | undefined): JobState {
  return states.get(value) ?? unexpected("the state of a job", value);
}

function knownDelivery(value: SQLOutputValue | undefined): Delivery {
  return deliveriesByName.get(value) ?? unexpected("a delivery guarantee", value);
}

/** A job in an unknown state counts as ended: no worker will ever take it. */
export function stateOf(value: SQLOutputValue | undefined): JobState {
  return states.get(value) ?? "dead";
}

/** An unknown guarantee is read as the strictest one, so its job is never dispatched twice. */
export function deliveryOf(value: SQLOutputValue | undefined): Delivery {
  return deliveriesByName.get(value) ?? "at-most-once";
}

function tagsOf(value: SQLOutputValue | undefined): string[] {
  return value === "[]" ? [] : textsOf(value);
}

/** A JSON list of strings. */
function textsOf(value: SQLOutputValue | undefined): string[] {
  const list: unknown = JSON.parse(textOf(value));
  return Array.isArray(list) ? list.map((item: unknown) => String(item)) : unexpected("a JSON list", list);
}

/** The columns of {@link storedColumns} that may hold an unreadable value. Those of {@link claimedColumns} come first in both. */
const checked: readonly CheckedColumn<Tuple[number]>[] = [
  { place: 4, field: "delivery", read: knownDelivery, placeholder: "at-most-once" },
  { place: 6, field: "tags", read: tagsOf, placeholder: "[]" },
  { place: 19, field: "state", read: ifRead(knownState), placeholder: "dead" },
];

/** A claimed row ends before these columns. */
function ifRead(
  read: (cell: SQLOutputValue | undefined) => unknown,
): (cell: SQLOutputValue | undefined) => unknown {
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
    cancelRequested: row[18] !== 0,
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
    claimedAt: dateOrNull(row[28]),
    finishedAt: dateOrNull(row[29]),
    concurrencyKey: textOrNull(row[30]),
    rateKey: textOrNull(row[31]),
    slot: numberOf(row[32]),
    relayed: row[33] !== 0,
    waitsFor,
  };
}
