import { EscapementError, recordError } from "../errors.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob } from "../store/claims.ts";

/**
 * How long this process gives a job back that it cannot read: as long as a new version of the code may take to reach
 * all nodes.
 */
const patienceMs = 10 * 60_000;
const firstDelayMs = 1_000;
const maxDelayMs = 30_000;
/** How many such jobs are remembered; one that is forgotten is given back for longer. */
const maxRemembered = 10_000;

/** How often this process has met a job whose input it cannot read, and since when. */
interface Met {
  readonly sinceMs: number;
  readonly times: number;
}

/**
 * What happens to a job whose input does not fit the schema here, or whose row says what this version does not know. In
 * a rolling deployment another node has the schema that it was enqueued with, so it goes back, due again soon. Nothing
 * was dispatched, so an at-most-once job may, too.
 */
function decideUnreadable(error: unknown, met: Met, nowMs: number): Outcome {
  const text = JSON.stringify(recordError(error));
  if (nowMs - met.sinceMs >= patienceMs) {
    const minutes = patienceMs / 60_000;
    return { kind: "die", reason: `${whatCannotBeRead(error)} for ${minutes} minutes`, error: text };
  }
  const delayMs = Math.min(firstDelayMs * 2 ** Math.min(met.times - 1, 16), maxDelayMs);
  return { kind: "release", delayMs, error: text };
}

function whatCannotBeRead(error: unknown): string {
  const isRow = error instanceof EscapementError && error.code === "unreadable-row";
  return isRow ? "its row could not be read" : "its input did not fit the schema";
}

/** The jobs that this process could not read, each with how often it has met them. */
export class UnreadableJobs {
  readonly #met = new Map<string, Met>();

  outcomeOf({ id, redrives }: ClaimedJob, error: unknown, nowMs: number): Outcome {
    // A redriven job starts fresh.
    const key = `${redrives} ${id}`;
    const known = this.#met.get(key);
    const met = { sinceMs: known?.sinceMs ?? nowMs, times: (known?.times ?? 0) + 1 };
    const outcome = decideUnreadable(error, met, nowMs);
    this.#met.delete(key);
    if (outcome.kind === "release") this.#met.set(key, met);
    const [oldest] = this.#met.keys();
    if (this.#met.size > maxRemembered && oldest !== undefined) this.#met.delete(oldest);
    return outcome;
  }
}
