import assert from "node:assert";
import type { SQLOutputValue } from "node:sqlite";
import { type Delivery, deliveries, type JobState, jobStates } from "../../job.ts";
import type { ClaimedJob, StoredJob } from "../../store.ts";
import type { Row } from "./connection.ts";

/** Every column of a job, the same in escapement_jobs and escapement_history. */
export const jobColumns = [
  "seq",
  "ns",
  "id",
  "state",
  "shelf",
  "name",
  "queue",
  "delivery",
  "priority",
  "run_at",
  "fire_at",
  "enqueued_at",
  "attempts",
  "max_crashes",
  "slot",
  "expire_at",
  "attempt",
  "crashes",
  "redrives",
  "rollbacks",
  "version",
  "token",
  "settled",
  "settled_by",
  "claimer",
  "claim_sequence",
  "claimed_at",
  "lease_boot",
  "lease_until",
  "cancel_requested",
  "relayed",
  "finished_at",
  "lane",
  "concurrency_key",
  "rate_key",
  "unique_key",
  "unique_ms",
  "debounce_key",
  "after_failure",
  "schedule",
  "tags",
  "reason",
  "error",
  "progress",
  "result",
  "input",
] as const;

/** What a dispatch needs. */
export const claimedColumns =
  "seq, id, name, queue, delivery, priority, tags, run_at, fire_at, enqueued_at, attempt, attempts, crashes, " +
  "max_crashes, redrives, token, schedule, input, cancel_requested";

/** What `get` and `list` show. */
export const storedColumns =
  `${claimedColumns}, state, reason, result, error, progress, expire_at, rollbacks, version, claimer, claimed_at, ` +
  "finished_at, concurrency_key, rate_key, relayed, slot";

export function textOf(value: SQLOutputValue | undefined): string {
  assert(typeof value === "string", "expected a text in this column");
  return value;
}

export function numberOf(value: SQLOutputValue | undefined): number {
  assert(typeof value === "number", "expected a number in this column");
  return value;
}

export function textOrNull(value: SQLOutputValue | undefined): string | null {
  return value === null ? null : textOf(value);
}

export function numberOrNull(value: SQLOutputValue | undefined): number | null {
  return value === null ? null : numberOf(value);
}

export function dateOf(value: SQLOutputValue | undefined): Date {
  return new Date(numberOf(value));
}

export function dateOrNull(value: SQLOutputValue | undefined): Date | null {
  return value === null ? null : dateOf(value);
}

export function stateOf(value: SQLOutputValue | undefined): JobState {
  const state = jobStates.find((known) => known === value);
  assert(state !== undefined, "expected the state of a job in this column");
  return state;
}

export function deliveryOf(value: SQLOutputValue | undefined): Delivery {
  const delivery = deliveries.find((known) => known === value);
  assert(delivery !== undefined, "expected a delivery guarantee in this column");
  return delivery;
}

function tagsOf(value: SQLOutputValue | undefined): string[] {
  return value === "[]" ? [] : textsOf(value);
}

/** A JSON list of texts. */
export function textsOf(value: SQLOutputValue | undefined): string[] {
  const list: unknown = JSON.parse(textOf(value));
  assert(Array.isArray(list), "expected a JSON list in this column");
  return list.map((item: unknown) => String(item));
}

export function toClaimedJob(row: Row): ClaimedJob {
  return {
    id: textOf(row["id"]),
    name: textOf(row["name"]),
    queue: textOf(row["queue"]),
    delivery: deliveryOf(row["delivery"]),
    priority: numberOf(row["priority"]),
    tags: tagsOf(row["tags"]),
    runAt: dateOf(row["run_at"]),
    fireAt: dateOf(row["fire_at"]),
    enqueuedAt: dateOf(row["enqueued_at"]),
    attempt: numberOf(row["attempt"]),
    attempts: numberOf(row["attempts"]),
    crashes: numberOf(row["crashes"]),
    maxCrashes: numberOf(row["max_crashes"]),
    redrives: numberOf(row["redrives"]),
    token: numberOf(row["token"]),
    schedule: textOrNull(row["schedule"]),
    input: textOf(row["input"]),
    cancelRequested: row["cancel_requested"] !== 0,
  };
}

export function toStoredJob(row: Row, waitsFor: readonly string[]): StoredJob {
  return {
    ...toClaimedJob(row),
    state: stateOf(row["state"]),
    reason: textOrNull(row["reason"]),
    result: textOrNull(row["result"]),
    error: textOrNull(row["error"]),
    progress: textOrNull(row["progress"]),
    expireAt: dateOrNull(row["expire_at"]),
    rollbacks: numberOf(row["rollbacks"]),
    version: numberOf(row["version"]),
    claimer: textOrNull(row["claimer"]),
    claimedAt: dateOrNull(row["claimed_at"]),
    finishedAt: dateOrNull(row["finished_at"]),
    waitsFor,
    concurrencyKey: textOrNull(row["concurrency_key"]),
    rateKey: textOrNull(row["rate_key"]),
    relayed: row["relayed"] !== 0,
    slot: numberOf(row["slot"]),
  };
}
