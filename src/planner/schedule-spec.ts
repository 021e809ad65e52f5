import { type FireSpec, FireTimes, fireSpecKeys } from "../cron/spec.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { EscapementError } from "../errors.ts";
import { checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { parseObject } from "./parse-object.ts";

export type Misfire = "once" | "skip" | "all";
export type Overlap = "allow" | "skip" | "queue-one" | "replace";

/** When a schedule fires, and what happens when it could not, or when its last job is not done. */
export interface ScheduleSpec extends FireSpec {
  /**
   * What to do about occurrences that were missed while no planner ran: fire the latest (`once`), none (`skip`), or each (`all`).
   *
   * @default "once"
   */
  readonly misfire?: Misfire;
  /** Nothing that was due longer ago is fired. @default "24h" */
  readonly lookback?: Duration;
  /** At most how many missed occurrences `misfire: "all"` fires: the latest of them, oldest first. @default 100 */
  readonly catchUp?: number;
  /**
   * When the previous job has not ended: fire anyway, not at all, once more after it, or instead of it.
   *
   * @default "allow"
   */
  readonly overlap?: Overlap;
  /** Jobs start up to this much later, each schedule by its own fixed share of it, so many schedules do not start at once. @default 0 */
  readonly jitter?: Duration;
  /** How often it fires in total. @default no limit */
  readonly limit?: number;
}

/** A schedule's rules, checked and ready. */
export interface ScheduleRules {
  readonly times: FireTimes;
  readonly misfire: Misfire;
  readonly lookbackMs: number;
  readonly catchUp: number;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly limit: number | null;
}

const policyKeys = ["misfire", "lookback", "catchUp", "overlap", "jitter", "limit"] as const;
const maxLookbackMs = 366 * 86_400_000;

/** @throws EscapementError with the option that is wrong. */
export function resolveSchedule(spec: ScheduleSpec): ScheduleRules {
  checkKnown(spec, [...fireSpecKeys, ...policyKeys], "a schedule");
  const lookbackMs = parseDuration(spec.lookback ?? "24h", "lookback");
  if (lookbackMs > maxLookbackMs) {
    throw new EscapementError(
      "invalid-schedule",
      `expected lookback to be at most a year, got ${lookbackMs} ms: after a long outage everything in it would be fired`,
    );
  }
  return {
    times: new FireTimes(spec),
    misfire: checkOneOf<Misfire>(spec.misfire ?? "once", ["once", "skip", "all"], "misfire"),
    lookbackMs,
    catchUp: checkInteger(spec.catchUp ?? 100, 1, 10_000, "catchUp"),
    overlap: checkOneOf<Overlap>(
      spec.overlap ?? "allow",
      ["allow", "skip", "queue-one", "replace"],
      "overlap",
    ),
    jitterMs: parseDuration(spec.jitter ?? 0, "jitter"),
    limit: spec.limit === undefined ? null : checkInteger(spec.limit, 1, Number.MAX_SAFE_INTEGER, "limit"),
  };
}

/** The part of a spec that says when, without the policies. */
export function fireSpecOf(spec: ScheduleSpec): FireSpec {
  return Object.fromEntries(
    Object.entries(spec).filter(([key]) => (fireSpecKeys as readonly string[]).includes(key)),
  );
}

const dateKeys: readonly string[] = ["at", "startAt", "endAt"];

/** A spec as the store keeps it: the same spec is the same string, whatever the order of its keys. */
export function encodeSpec(spec: ScheduleSpec): string {
  const entries = Object.entries(spec).filter(([, value]) => value !== undefined);
  return JSON.stringify(Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

/** @throws EscapementError `unreadable-row`; whether its fields are right is for {@link resolveSchedule} to say. */
export function decodeSpec(text: string): ScheduleSpec {
  return parseObject(text, "spec", (key, value) =>
    dateKeys.includes(key) && typeof value === "string" ? new Date(value) : value,
  );
}
