import type { Delivery } from "../job.ts";
import type { CancelCall, History, ScheduleCall, UnscheduleCall } from "./history.ts";

/** A job that was asked for, by a call or by a schedule. */
export interface ExpectedJob {
  readonly id: string;
  readonly delivery: Delivery;
  /** It must be there: the call was answered, or the rule stood for certain. */
  readonly certain: boolean;
  /** Before this it must not start. */
  readonly dueAtMs: number;
  readonly failures: number;
  readonly cancels: readonly CancelCall[];
  readonly occurrence: { readonly schedule: string; readonly fireAt: number } | null;
}

export interface Span {
  readonly schedule: string;
  readonly delivery: Delivery;
  readonly everyMs: number;
  /** On the store's wall clock: when the rule may have begun, when it certainly had; when it may have ended, when it certainly had. */
  readonly mayFrom: number;
  readonly mustFrom: number;
  readonly mustUntil: number;
  readonly mayUntil: number;
}

/** Every job that somebody asked for, by id. Calls that failed for certain asked for nothing. */
export function expectedJobs(history: History): Map<string, ExpectedJob> {
  const cancels = Map.groupBy(
    history.operations.filter((operation) => operation.kind === "cancel"),
    ({ job }) => job,
  );
  const expected = new Map<string, ExpectedJob>();
  for (const operation of history.operations) {
    if (operation.kind !== "enqueue" || operation.outcome === "fail") continue;
    const { job: id, delivery, delayMs, failures, outcome, invokedAtMs } = operation;
    const job: ExpectedJob = {
      id,
      delivery,
      certain: outcome === "ok",
      dueAtMs: invokedAtMs + delayMs,
      failures,
      cancels: cancels.get(id) ?? [],
      occurrence: null,
    };
    expected.set(id, job);
  }
  for (const job of spansOf(history).flatMap((span) => occurrences(span, history, cancels)))
    expected.set(job.id, job);
  return expected;
}

/** When each schedule's rule stood. */
export function spansOf({ operations, rules, endedAtMs }: History): Span[] {
  const ends = new Map(
    operations
      .filter((operation): operation is UnscheduleCall => operation.kind === "unschedule")
      .map((operation) => [operation.schedule, operation]),
  );
  const wall = (atMs: number): number => atMs + rules.wallOffsetMs;
  return operations
    .filter((operation): operation is ScheduleCall => operation.kind === "schedule")
    .filter(({ outcome }) => outcome !== "fail")
    .map(({ schedule, delivery, everyMs, outcome, invokedAtMs, endedAtMs: answeredAtMs }) => {
      const end = ends.get(schedule);
      const mustUntil = end === undefined ? endedAtMs : end.invokedAtMs;
      const mayUntil = end?.outcome === "ok" ? end.endedAtMs : endedAtMs;
      return {
        schedule,
        delivery,
        everyMs,
        mayFrom: wall(invokedAtMs) - rules.precisionMs,
        mustFrom: outcome === "ok" ? wall(answeredAtMs) + rules.precisionMs : Number.POSITIVE_INFINITY,
        // An occurrence of the last moment may not have been planned when the rule was taken away.
        mustUntil: wall(mustUntil) - lateMs(rules),
        mayUntil: wall(mayUntil) + rules.precisionMs,
      };
    });
}

/** How late an occurrence may be planned without anything being wrong. */
export function lateMs({ leaseMs, pollMs }: History["rules"]): number {
  return leaseMs + pollMs + 1_000;
}

function occurrences(
  span: Span,
  { rules }: History,
  cancels: ReadonlyMap<string, readonly CancelCall[]>,
): ExpectedJob[] {
  const { schedule, delivery, everyMs, mayFrom, mustFrom, mustUntil, mayUntil } = span;
  const found: ExpectedJob[] = [];
  for (let fireAt = Math.ceil(mayFrom / everyMs) * everyMs; fireAt <= mayUntil; fireAt += everyMs) {
    const id = `{${schedule}}@${new Date(fireAt).toISOString()}`;
    found.push({
      id,
      delivery,
      certain: fireAt > mustFrom && fireAt < mustUntil,
      dueAtMs: fireAt - rules.wallOffsetMs,
      failures: 0,
      cancels: cancels.get(id) ?? [],
      occurrence: { schedule, fireAt },
    });
  }
  return found;
}
