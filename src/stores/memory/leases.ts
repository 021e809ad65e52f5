import { expiredReason, silence } from "../../state.ts";
import type { ExtendParams, ExtendResult, ReportParams } from "../../store/claims.ts";
import type { ReapParams, ReapResult } from "../../store/reaping.ts";
import type { Data } from "./data/data.ts";
import { cancelIdle, settleClaim } from "./end.ts";
import { held } from "./finish.ts";
import type { Row } from "./rows.ts";
import type { Moment, Session } from "./session.ts";

export function extend(session: Session, params: ExtendParams): ExtendResult[] {
  const { data } = session;
  return params.claims.map((claim) => {
    const row = held(data, params.claimer, claim);
    if (row === undefined) return { outcome: "stale", cancelRequested: false };
    data.write(row, { leaseUntil: session.monotonic + params.leaseMs, ahead: false });
    return { outcome: "extended", cancelRequested: row.cancelRequested };
  });
}

export function report({ data, now }: Session, params: ReportParams): void {
  for (const entry of params.reports) {
    const row = held(data, params.claimer, entry);
    if (row === undefined) continue;
    if (entry.progress !== undefined) data.write(row, { progress: entry.progress });
    for (const line of entry.lines) data.tell(row, now, "log", line);
  }
}

export function reap(session: Session, { limit, until }: ReapParams): ReapResult {
  const { data } = session;
  const silentBy = Math.min(session.monotonic, until ?? Number.POSITIVE_INFINITY);
  const reaped: ReapResult["reaped"][number][] = [];
  while (reaped.length < limit) {
    const row = nextToReap(data, { now: session.now, monotonic: silentBy });
    if (row === undefined) break;
    if (row.state === "active") {
      settleClaim(data, row, silence(row), session.now);
    } else {
      cancelIdle(data, row, "expire", expiredReason, session.now);
    }
    reaped.push({ id: row.id, name: row.name, queue: row.queue, state: row.state, reason: row.reason });
  }
  return { reaped, more: nextToReap(data, session) !== undefined, mark: session.monotonic };
}

function nextToReap(data: Data, { now, monotonic }: Moment): Row | undefined {
  const silent = data.indexes.leases.first();
  if (silent !== undefined && (silent.leaseUntil ?? 0) <= monotonic) return silent;
  const expired = data.indexes.expiring.first();
  return expired !== undefined && (expired.expireAt ?? 0) <= now ? expired : undefined;
}
