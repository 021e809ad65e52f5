import { type Delivery, deliveries, type JobState, jobStates } from "../../job.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import type { StoredJob } from "../../store/jobs.ts";
import { type CheckedColumn, instantOf, withPlaceholders } from "../../unreadable.ts";

/** The answer is not what this library's functions return. `node:assert` would cost more than the reading itself. */
function unexpected(what: string, value: unknown): never {
  throw new TypeError(`expected ${what} from the server, got ${value === null ? "null" : typeof value}`);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : unexpected("an object", value);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : unexpected("a list", value);
}

/** A list of lists. */
export function tuplesOf(value: unknown): readonly (readonly unknown[])[] {
  return listOf(value).map(listOf);
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : unexpected("a string", value);
}

export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : unexpected("a number", value);
}

export function textOrNull(value: unknown): string | null {
  return value === null ? null : textOf(value);
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : numberOf(value);
}

export function textsOf(value: unknown): string[] {
  return listOf(value).map(textOf);
}

export function dateOf(value: unknown): Date {
  return instantOf(numberOf(value));
}

export function dateOrNull(value: unknown): Date | null {
  return value === null ? null : dateOf(value);
}

const states = new Map<unknown, JobState>(jobStates.map((state) => [state, state]));
const deliveriesByName = new Map<unknown, Delivery>(deliveries.map((delivery) => [delivery, delivery]));

function knownState(value: unknown): JobState {
  return states.get(value) ?? unexpected("the state of a job", value);
}

function knownDelivery(value: unknown): Delivery {
  return deliveriesByName.get(value) ?? unexpected("a delivery guarantee", value);
}

/** A job in an unknown state counts as ended: no worker will ever take it. */
export function stateOf(value: unknown): JobState {
  return states.get(value) ?? "dead";
}

export function stateOrNull(value: unknown): JobState | null {
  return value === null ? null : stateOf(value);
}

/** An unknown guarantee is read as the strictest one, so its job is never dispatched twice. */
export function deliveryOf(value: unknown): Delivery {
  return deliveriesByName.get(value) ?? "at-most-once";
}

/** The columns of {@link storedColumns} that may hold an unreadable value. The values of claimed_json come first in both. */
const checked: readonly CheckedColumn<unknown>[] = [
  { place: 3, field: "delivery", read: knownDelivery, placeholder: "at-most-once" },
  { place: 5, field: "tags", read: textsOf, placeholder: [] },
  { place: 19, field: "state", read: ifRead(knownState), placeholder: "dead" },
];

/** A claimed row ends before these columns. */
function ifRead(read: (cell: unknown) => unknown): (cell: unknown) => unknown {
  return (cell) => (cell === undefined ? undefined : read(cell));
}

/** From claimed_json. An unreadable job does not affect the others. */
export function toClaimedJob(row: readonly unknown[]): ClaimedJob {
  try {
    return readClaimed(row);
  } catch {
    const patched = withPlaceholders(row, checked);
    return { ...readClaimed(patched.row), unreadable: patched.unreadable };
  }
}

function readClaimed(row: readonly unknown[]): ClaimedJob {
  return {
    id: textOf(row[0]),
    name: textOf(row[1]),
    queue: textOf(row[2]),
    delivery: knownDelivery(row[3]),
    priority: numberOf(row[4]),
    tags: textsOf(row[5]),
    runAt: dateOf(row[6]),
    fireAt: dateOf(row[7]),
    enqueuedAt: dateOf(row[8]),
    attempt: numberOf(row[9]),
    attempts: numberOf(row[10]),
    crashes: numberOf(row[11]),
    maxCrashes: numberOf(row[12]),
    redrives: numberOf(row[13]),
    token: numberOf(row[14]),
    schedule: textOrNull(row[15]),
    input: textOf(row[16]),
    cancelRequested: row[17] === true,
  };
}

/** From hold_jobs: the same values, in columns, then a list of rare values. A column is a single value, not a list, if all rows share it. */
export function toClaimedJobs(columns: readonly unknown[]): ClaimedJob[] {
  const rare = columns[12] ?? null;
  const traits = new Map(rare === null ? [] : tuplesOf(rare).map((row) => [row[0], row]));
  return listOf(columns[0]).map((id, place) => {
    const at = (index: number): unknown => {
      const column = columns[index];
      return Array.isArray(column) ? column[place] : column;
    };
    const runAt = at(5);
    const [, fireAt, tags, crashes, redrives, schedule, cancelRequested] = traits.get(id) ?? plain;
    return toClaimedJob([
      id,
      at(1),
      at(2),
      at(3),
      at(4),
      tags,
      runAt,
      fireAt ?? runAt,
      at(6),
      at(7),
      at(8),
      crashes,
      at(9),
      redrives,
      at(10),
      schedule,
      at(11),
      cancelRequested,
    ]);
  });
}

/** What almost every job is: due at its nominal time, without tags, crashes, redrives or schedule, and not cancelled. */
const plain: readonly unknown[] = [null, null, [], 0, 0, null, false];

const claimedColumns =
  "id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, attempt, attempts, crashes, max_crashes, " +
  "redrives, token, schedule, input, cancel_requested, version";

/** What `get` and `list` show of a row `j` of all_jobs. The first column is the job's place in enqueue order. */
export function storedColumns(schema: string): string {
  return `seq, json_build_array(${claimedColumns}, state, reason, result, error, progress, expire_at, rollbacks, claimer,
    claimed_at, finished_at, concurrency_key, rate_key, slot, relayed,
    case when state = 'blocked' then (select coalesce(array_agg(p.id order by e.position), '{}')
      from ${schema}.parents e join ${schema}.jobs p on p.seq = e.parent where e.child = j.seq) else '{}' end) as job`;
}

/** From {@link storedColumns}. */
export function toStoredJob(row: readonly unknown[]): StoredJob {
  try {
    return readStored(row);
  } catch {
    const patched = withPlaceholders(row, checked);
    return { ...readStored(patched.row), unreadable: patched.unreadable };
  }
}

function readStored(row: readonly unknown[]): StoredJob {
  return {
    ...readClaimed(row),
    version: numberOf(row[18]),
    state: knownState(row[19]),
    reason: textOrNull(row[20]),
    result: textOrNull(row[21]),
    error: textOrNull(row[22]),
    progress: textOrNull(row[23]),
    expireAt: dateOrNull(row[24]),
    rollbacks: numberOf(row[25]),
    claimer: textOrNull(row[26]),
    claimedAt: dateOrNull(row[27]),
    finishedAt: dateOrNull(row[28]),
    concurrencyKey: textOrNull(row[29]),
    rateKey: textOrNull(row[30]),
    slot: numberOf(row[31]),
    relayed: row[32] === true,
    waitsFor: textsOf(row[33]),
  };
}
