import type { Moment } from "../session.ts";
import type { Data } from "./data.ts";

/**
 * When time alone can change something in a namespace: a job becomes due or expires, a schedule fires, a rate window ends. Not after `now`
 * while a claim or a partition is held: then leases are renewed, and handlers may be waiting for anything. Null: never.
 */
export function nextChangeAt(data: Data, { now }: Moment): number | null {
  const { indexes } = data;
  const isHeld = indexes.leases.first() !== undefined || indexes.named.size > 0;
  if (isHeld || data.partitions.some(({ owner }) => owner !== null)) return now;
  const times = [
    indexes.lines.nextAt(),
    indexes.expiring.first()?.expireAt ?? null,
    ...[...data.schedules.values()].map(({ paused, nextAt }) =>
      paused ? null : (nextAt?.getTime() ?? null),
    ),
    ...[...data.windows.values()].map(({ startedAt, perMs }) => startedAt + perMs),
  ].filter((at) => at !== null);
  return times.length === 0 ? null : Math.min(...times);
}
