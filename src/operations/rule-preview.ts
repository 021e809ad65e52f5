import { clockNote } from "../cron/clock-note.ts";
import { explainCron } from "../cron/explain.ts";
import { nextFireTimes } from "../cron/spec.ts";
import { fireSpecOf, resolveSchedule, type ScheduleSpec } from "../planner/schedule-spec.ts";

/** What a rule means, before it is saved. */
export interface RulePreview {
  /** A cron expression in plain English; null for other rules. */
  readonly text: string | null;
  readonly times: readonly {
    readonly at: Date;
    /** That the clocks change around this time, in the rule's zone. */
    readonly note: string | null;
  }[];
}

/** @throws EscapementError with the option that is wrong. */
export function previewRule(spec: ScheduleSpec, count: number): RulePreview {
  resolveSchedule(spec);
  const { cron, timezone = "UTC", days = "or" } = spec;
  const times = nextFireTimes(fireSpecOf(spec), { count });
  return {
    text: cron === undefined ? null : explainCron(cron, { days }),
    // An interval knows no clocks, only the time between two firings.
    times: times.map((at) => ({ at, note: cron === undefined ? null : clockNote(at, timezone) })),
  };
}
