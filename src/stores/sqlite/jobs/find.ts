import type { Delivery, JobState } from "../../../job.ts";
import type { AfterFailure } from "../../../state.ts";
import type { Row } from "../connection/connection.ts";
import { deliveryOf, numberOf, numberOrNull, stateOf, textOf, textOrNull } from "../rows.ts";
import type { Session } from "../session.ts";

/** What the verbs need to know about a job to change it. */
export interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly state: JobState;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly priority: number;
  readonly runAt: number;
  readonly fireAt: number;
  readonly enqueuedAt: number;
  readonly expireAt: number | null;
  readonly attempt: number;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly version: number;
  readonly token: number;
  /** The last token that its holder settled, and that holder. */
  readonly settled: number;
  readonly settledBy: string | null;
  readonly claimer: string | null;
  readonly claimedAt: number | null;
  /** Claimed ahead, and not known to have started. */
  readonly ahead: boolean;
  readonly cancelRequested: boolean;
  readonly reason: string | null;
  readonly relayed: boolean;
  readonly slot: number;
  readonly lane: string | null;
  readonly concurrencyKey: string | null;
  /** It is active in a queue with a limit on active jobs. */
  readonly limited: boolean;
  readonly rateKey: string | null;
  readonly uniqueKey: string | null;
  readonly uniqueMs: number | null;
  readonly debounceKey: string | null;
  readonly afterFailure: AfterFailure;
  readonly schedule: string | null;
}

const rowColumns =
  "seq, id, state, name, queue, delivery, priority, run_at, fire_at, enqueued_at, expire_at, attempt, crashes, " +
  "max_crashes, version, token, settled, settled_by, claimer, claimed_at, ahead, cancel_requested, relayed, slot, lane, " +
  "concurrency_key, limited, rate_key, unique_key, unique_ms, debounce_key, after_failure, schedule, reason";

function toJobRow(row: Row): JobRow {
  return {
    seq: numberOf(row["seq"]),
    id: textOf(row["id"]),
    state: stateOf(row["state"]),
    name: textOf(row["name"]),
    queue: textOf(row["queue"]),
    delivery: deliveryOf(row["delivery"]),
    priority: numberOf(row["priority"]),
    runAt: numberOf(row["run_at"]),
    fireAt: numberOf(row["fire_at"]),
    enqueuedAt: numberOf(row["enqueued_at"]),
    expireAt: numberOrNull(row["expire_at"]),
    attempt: numberOf(row["attempt"]),
    crashes: numberOf(row["crashes"]),
    maxCrashes: numberOf(row["max_crashes"]),
    version: numberOf(row["version"]),
    token: numberOf(row["token"]),
    settled: numberOf(row["settled"]),
    settledBy: textOrNull(row["settled_by"]),
    claimer: textOrNull(row["claimer"]),
    claimedAt: numberOrNull(row["claimed_at"]),
    ahead: row["ahead"] !== 0,
    cancelRequested: row["cancel_requested"] !== 0,
    reason: textOrNull(row["reason"]),
    relayed: row["relayed"] !== 0,
    slot: numberOf(row["slot"]),
    lane: textOrNull(row["lane"]),
    concurrencyKey: textOrNull(row["concurrency_key"]),
    limited: row["limited"] !== 0,
    rateKey: textOrNull(row["rate_key"]),
    uniqueKey: textOrNull(row["unique_key"]),
    uniqueMs: numberOrNull(row["unique_ms"]),
    debounceKey: textOrNull(row["debounce_key"]),
    afterFailure: row["after_failure"] === "run" ? "run" : "cancel",
    schedule: textOrNull(row["schedule"]),
  };
}

const byId = `select ${rowColumns} from escapement_all_jobs where ns = ? and id = ?`;
const bySeq = `select ${rowColumns} from escapement_all_jobs where seq = ?`;

/** A job in any state, by its own id. */
export function findJob({ connection, ns }: Session, id: string): JobRow | null {
  const row = connection.get(byId, ns, id);
  return row === undefined ? null : toJobRow(row);
}

export function findBySeq({ connection }: Session, seq: number): JobRow | null {
  const row = connection.get(bySeq, seq);
  return row === undefined ? null : toJobRow(row);
}

const byAlias = "select job from escapement_aliases where ns = ? and id = ?";

/** The job that an id refers to, directly or by an alias. */
export function resolveJob(session: Session, id: string): JobRow | null {
  const own = findJob(session, id);
  if (own !== null) return own;
  const alias = session.connection.get(byAlias, session.ns, id);
  return alias === undefined ? null : findBySeq(session, numberOf(alias["job"]));
}
