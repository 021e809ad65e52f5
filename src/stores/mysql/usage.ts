import { instantOf } from "../../mend.ts";
import type { RateWindow, Usage, UsageParams } from "../../store.ts";
import { laneOfKey } from "./jobs.ts";
import type { Tuple } from "./link.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";
import { sql } from "./sql.ts";

export async function usage(session: Session, params: UsageParams): Promise<Usage> {
  const { link, ns, now } = session;
  const { queue, concurrencyKey, rateKey } = params;
  // A queue's line may have been made by another process since the lines were read, so it is found by the queue's name.
  const [inQueue, underKey, windows] = await Promise.all([
    link.query(
      sql`select count(*) from escapement_lines as l straight_join escapement_jobs as j force index (escapement_jobs_line) on j.line = l.line
        where l.ns = ${ns} and l.kind = 'active' and l.queue = ${queue}`,
    ),
    link.query(
      sql`select count(*) from escapement_lane_jobs
        where ns = ${ns} and place = 'active' and lane = ${laneOfKey(concurrencyKey ?? "")}`,
    ),
    link.query(
      sql`select kind, started_at, per_ms, used from escapement_windows
        where ns = ${ns} and ((kind = 'queue' and window_key = ${queue}) or (kind = 'key' and window_key = ${rateKey ?? ""}))`,
    ),
  ]);
  const windowOf = (kind: "queue" | "key"): RateWindow | null =>
    openWindow(
      windows.rows.find((row) => textOf(row[0]) === kind),
      now,
    );
  return {
    now: new Date(now),
    activeInQueue: numberOf(inQueue.rows[0]?.[0]),
    activeUnderKey: concurrencyKey === null ? 0 : numberOf(underKey.rows[0]?.[0]),
    queueWindow: windowOf("queue"),
    keyWindow: rateKey === null ? null : windowOf("key"),
  };
}

function openWindow(row: Tuple | undefined, now: number): RateWindow | null {
  if (row === undefined) return null;
  const [startedAt, perMs] = [numberOf(row[1]), numberOf(row[2])];
  if (now < startedAt || now >= startedAt + perMs) return null;
  return { startedAt: instantOf(startedAt), perMs, used: numberOf(row[3]) };
}
