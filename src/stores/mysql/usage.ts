import type { RateWindow, Usage, UsageParams } from "../../store/queues.ts";
import { laneOfKey } from "../lane.ts";
import { usedOf } from "../limits.ts";
import type { Tuple } from "./connection/link.ts";
import { sql } from "./connection/sql.ts";
import { numberOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

export async function usage(session: Session, params: UsageParams): Promise<Usage> {
  const { link, ns, now } = session;
  const { queue, concurrencyKey, rateKey } = params;
  // Another process may have created a queue's line after the lines were read, so it is found by the queue's name.
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
  return usedOf({ startedAt: numberOf(row[1]), perMs: numberOf(row[2]), used: numberOf(row[3]) }, now);
}
