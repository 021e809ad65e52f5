import { explainCron } from "../../../src/cron/explain.ts";
import type { Schedule } from "../api/answers.ts";
import { inZone, span } from "../format.ts";

export function schedulePath(key: string): string {
  return `schedules/${encodeURIComponent(key)}`;
}

/** The rule as it is written. */
export function ruleOf({ spec }: Pick<Schedule, "spec">): string {
  if (spec.cron !== undefined) return spec.cron;
  if (spec.every !== undefined)
    return `every ${typeof spec.every === "number" ? span(spec.every) : spec.every}`;
  return spec.at === undefined ? "unreadable" : "once";
}

/** The rule in words, with the clocks that it goes by: `every hour, UTC`. */
export function meaningOf({ spec }: Pick<Schedule, "spec">): string | null {
  if (spec.at !== undefined) return `at ${inZone(spec.at, "UTC")} UTC`;
  if (spec.cron === undefined) return null;
  try {
    const text = explainCron(spec.cron, { days: spec.days ?? "or" });
    return `${text === "at minute 0 of the hour" ? "every hour" : text}, ${spec.timezone ?? "UTC"}`;
  } catch {
    // Another version wrote it; the page shows it unchanged.
    return spec.timezone ?? null;
  }
}
