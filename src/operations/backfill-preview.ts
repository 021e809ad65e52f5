import type { Escapement } from "../app/escapement.ts";
import { nextFireTimes } from "../cron/spec.ts";
import { EscapementError } from "../errors.ts";
import { fireSpecOf } from "../planner/schedule-spec.ts";

/** What a backfill would plan. */
export interface BackfillPreview {
  readonly count: number;
  /** The first of them. */
  readonly times: readonly Date[];
}

/** As many as a backfill plans at once. */
const mostTimes = 10_000;
const mostShown = 100;

/** The occurrences of a span that were skipped or never planned. A planner that runs meanwhile may plan some of them first. */
export async function previewBackfill(
  app: Escapement,
  key: string,
  from: Date,
  to: Date,
): Promise<BackfillPreview> {
  const schedule = await app.getSchedule(key);
  if (schedule === null)
    throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
  const { now } = await app.health();
  const end = to < now ? to : now;
  const after = new Date(from.getTime() - 1);
  const spec = fireSpecOf(schedule.spec);
  const times = nextFireTimes(spec, { after, count: mostTimes + 1 }).filter((time) => time <= end);
  if (times.length > mostTimes) {
    throw new EscapementError(
      "invalid-option",
      `expected a backfill of at most ${mostTimes} occurrences, got more; use a shorter span`,
    );
  }
  const rows = await app.occurrences(key, { from, to: new Date(end.getTime() + 1), limit: 100_000 });
  const planned = new Set(
    rows.filter(({ fate }) => fate !== "skipped").map(({ fireAt }) => fireAt.getTime()),
  );
  const missing = times.filter((time) => !planned.has(time.getTime()));
  return { count: missing.length, times: missing.slice(0, mostShown) };
}
