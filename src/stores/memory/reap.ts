import { silence } from "../../state.ts";
import type { PruneParams, PruneResult, ReapParams, ReapResult } from "../../store.ts";
import { cancelIdle, settleClaim } from "./end.ts";
import { pruneHistory } from "./history.ts";
import { pruneWindows } from "./limits.ts";
import { pruneAudit } from "./operations.ts";
import { compareText } from "./queues.ts";
import { forgetAt, holdsUniqueKey, type Row } from "./row.ts";
import type { Moment, Space } from "./space.ts";

export function reap(space: Space, { limit, until }: ReapParams, moment: Moment): ReapResult {
  const silentBy = Math.min(moment.monotonic, until ?? Number.POSITIVE_INFINITY);
  const reaped: ReapResult["reaped"][number][] = [];
  while (reaped.length < limit) {
    const row = nextToReap(space, { now: moment.now, monotonic: silentBy });
    if (row === undefined) break;
    if (row.state === "active") {
      settleClaim(space, row, silence(row), moment.now);
    } else {
      cancelIdle(space, row, "expire", "expired", moment.now);
    }
    reaped.push({ id: row.id, name: row.name, queue: row.queue, state: row.state, reason: row.reason });
  }
  return { reaped, more: nextToReap(space, moment) !== undefined, mark: moment.monotonic };
}

function nextToReap(space: Space, { now, monotonic }: Moment): Row | undefined {
  const silent = space.indexes.leases.first();
  if (silent !== undefined && (silent.leaseUntil ?? 0) <= monotonic) return silent;
  const expired = space.indexes.expiring.first();
  return expired !== undefined && (expired.expireAt ?? 0) <= now ? expired : undefined;
}

export function prune(space: Space, params: PruneParams, now: number): PruneResult {
  for (const node of [...space.nodes.values()]) {
    if (node.seenAt.getTime() + params.nodesMs <= now) space.nodes.delete(node.id);
  }
  pruneWindows(space, now);
  const moreRows = pruneLedgers(space, now - params.occurrencesMs, params.limit);
  const moreEntries = pruneAudit(space, params, now);
  const moreHistory = pruneHistory(space, params, now);
  const old: Row[] = [];
  for (const row of forgettable(space, params, now)) {
    old.push(row);
    if (old.length > params.limit) break;
  }
  const pruned = old.slice(0, params.limit);
  for (const row of pruned) space.forget(row);
  const more = moreRows || moreEntries || moreHistory || old.length > pruned.length;
  return { pruned: pruned.length, more };
}

/** Whether there are more. */
function pruneLedgers(space: Space, before: number, limit: number): boolean {
  const rows = [...space.ledgers]
    .flatMap(([key, ledger]) => [...ledger.values()].map((row) => ({ key, ledger, row })))
    .filter(({ row }) => row.plannedAt <= before)
    .toSorted(
      (a, b) => a.row.plannedAt - b.row.plannedAt || compareText(a.key, b.key) || a.row.fireAt - b.row.fireAt,
    );
  for (const { ledger, row } of rows.slice(0, limit)) ledger.delete(row.fireAt);
  return rows.length > limit;
}

/** Terminal jobs past their retention, each state from the oldest on, then those with one of their own; who still holds a unique key stays. */
function* forgettable(space: Space, params: PruneParams, now: number): Generator<Row> {
  const { ended, forgetting } = space.indexes;
  const retentions = [
    { rows: ended.succeeded, keptMs: params.succeededMs },
    { rows: ended.cancelled, keptMs: params.cancelledMs },
    { rows: ended.dead, keptMs: params.deadMs },
    { rows: ended.lost, keptMs: params.lostMs },
  ];
  for (const { rows, keptMs } of retentions) {
    for (const row of rows.upward(null)) {
      if ((row.finishedAt ?? 0) + keptMs > now) break;
      if (!holdsUniqueKey(row, now)) yield row;
    }
  }
  for (const row of forgetting.upward(null)) {
    if ((forgetAt(row) ?? 0) > now) break;
    if (!holdsUniqueKey(row, now)) yield row;
  }
}
