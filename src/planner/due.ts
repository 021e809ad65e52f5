import type { ScheduleRules } from "./schedule-spec.ts";

/** An occurrence that is no later than this was not missed: no planner is ever exactly on time. */
const missedAfterMs = 10_000;

/** How many occurrences one step looks at: what an outage of years left behind is processed in pieces. */
const maxDue = 100_000;

/** How many missed occurrences one step fires, so a backlog does not starve what is due now. */
const maxCatchUpStep = 10;

/** A run of occurrences with the same fate; those to be fired are alone. */
export type Decision =
  | { readonly fate: "planned"; readonly fireAt: number }
  | {
      readonly fate: "skipped";
      readonly fireAt: number;
      readonly until: number;
      readonly count: number;
      readonly reason: string;
    };

export interface DueDecisions {
  readonly decisions: readonly Decision[];
  /** Where to continue: the next time to fire, or null when there is none. */
  readonly advanceTo: number | null;
  /** There is more to catch up with. */
  readonly more: boolean;
}

/** Decides, by the misfire policy, which of the times from `nextAt` up to `now` fire. Pure. */
export function decideDue(rules: ScheduleRules, nextAt: number, now: number): DueDecisions {
  const { due, following } = collect(rules, nextAt, now);
  const fates = due.map((_, index) => fateOf(rules, due, index, now, following));
  const cut = cutAfter(fates, maxCatchUpStep);
  const taken = fates.slice(0, cut);
  const advanceTo = cut < due.length ? (due[cut] ?? null) : following;
  return {
    decisions: merge(due.slice(0, cut), taken),
    advanceTo,
    more: advanceTo !== null && advanceTo <= now,
  };
}

function collect(
  rules: ScheduleRules,
  nextAt: number,
  now: number,
): { due: number[]; following: number | null } {
  const due: number[] = [];
  for (const time of rules.times.after(nextAt - 1)) {
    if (time > now || due.length >= maxDue) return { due, following: time };
    due.push(time);
  }
  return { due, following: null };
}

/** Null: it fires. Otherwise why not. */
function fateOf(
  rules: ScheduleRules,
  due: readonly number[],
  index: number,
  now: number,
  following: number | null,
): string | null {
  const lateMs = now - (due[index] ?? 0);
  const isLast = index === due.length - 1 && (following === null || following > now);
  const anyMissed = now - (due[0] ?? now) > missedAfterMs;
  if (!anyMissed) return null;
  if (lateMs > rules.lookbackMs) return "misfire: older than the look-back";
  switch (rules.misfire) {
    case "once":
      return isLast ? null : "misfire: only the latest missed one fires";
    case "skip":
      return lateMs <= missedAfterMs ? null : "misfire: missed, and missed ones are skipped";
    case "all":
      // Where this is only a piece of what was missed, later pieces have the latest.
      return due.length - index <= rules.catchUp && (following === null || following > now)
        ? null
        : "misfire: more were missed than are caught up with";
  }
}

/** How many of the fates to take, so at most `most` of them fire. */
function cutAfter(fates: readonly (string | null)[], most: number): number {
  let firing = 0;
  const place = fates.findIndex((reason) => reason === null && ++firing > most);
  return place < 0 ? fates.length : place;
}

function merge(due: readonly number[], fates: readonly (string | null)[]): Decision[] {
  const merged: Decision[] = [];
  for (const [index, reason] of fates.entries()) {
    const fireAt = due[index] ?? 0;
    const last = merged.at(-1);
    if (reason === null) merged.push({ fate: "planned", fireAt });
    else if (last?.fate === "skipped" && last.reason === reason) {
      merged[merged.length - 1] = { ...last, until: fireAt, count: last.count + 1 };
    } else merged.push({ fate: "skipped", fireAt, until: fireAt, count: 1, reason });
  }
  return merged;
}
