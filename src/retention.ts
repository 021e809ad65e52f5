import { type Duration, parseDuration } from "./duration.ts";
import type { JobState } from "./job.ts";
import { checkKnown } from "./options.ts";
import type { Retention } from "./store/jobs.ts";

/** How long jobs of one definition are kept after their end. What is left out is as the app's `retention` says. */
export interface JobRetentionOptions {
  readonly succeeded?: Duration;
  readonly cancelled?: Duration;
  readonly dead?: Duration;
  readonly lost?: Duration;
}

/** @param of how an option is called in a message. */
export function resolveJobRetention(
  options: JobRetentionOptions | undefined,
  of: (option: string) => string,
): Retention | null {
  if (options === undefined) return null;
  checkKnown(options, ["succeeded", "cancelled", "dead", "lost"], of("retention"));
  const kept = (state: keyof JobRetentionOptions): number | null => {
    const value = options[state];
    return value === undefined ? null : parseDuration(value, of(`retention.${state}`));
  };
  const retention = {
    succeededMs: kept("succeeded"),
    cancelledMs: kept("cancelled"),
    deadMs: kept("dead"),
    lostMs: kept("lost"),
  };
  return Object.values(retention).every((ms) => ms === null) ? null : retention;
}

/** How long a job is kept that ended in this state; null if its own retention says nothing about it. */
export function ownRetentionMs(retention: Retention | null, state: JobState): number | null {
  if (retention === null) return null;
  switch (state) {
    case "succeeded":
      return retention.succeededMs;
    case "cancelled":
      return retention.cancelledMs;
    case "dead":
      return retention.deadMs;
    case "lost":
      return retention.lostMs;
    default:
      return null;
  }
}
