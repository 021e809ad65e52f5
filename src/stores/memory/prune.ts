import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import type { Data } from "./data/data.ts";
import { pruneHistory } from "./history.ts";
import { pruneWindows } from "./limits.ts";
import { pruneAudit } from "./operations.ts";
import { compareText } from "./queues.ts";
import { forgetAt, holdsUniqueKey, type Row } from "./rows.ts";
import type { Session } from "./session.ts";

export function prune(session: Session, params: PruneParams): PruneResult {
  const { data, now } = session;
  for (const node of [...data.nodes.values()]) {
    if (node.seenAt.getTime() + params.nodesMs <= now) data.nodes.delete(node.id);
  }
  pruneWindows(data, now);
  const moreRows = pruneLedgers(data, now - params.occurrencesMs, params.limit);
  const moreEntries = pruneAudit(session, params);
  const moreHistory = pruneHistory(session, params);
  const old: Row[] = [];
  for (const row of forgettable(data, params, now)) {
    old.push(row);
    if (old.length > params.limit) break;
  }
  const pruned = old.slice(0, params.limit);
  for (const row of pruned) data.forget(row);
  const more = moreRows || moreEntries || moreHistory || old.length > pruned.length;
  return { pruned: pruned.length, more };
}

/** Whether there are more. */
function pruneLedgers(data: Data, before: number, limit: number): boolean {
  const rows = [...data.ledgers]
    .flatMap(([key, ledger]) => [...ledger.values()].map((row) => ({ key, ledger, row })))
    .filter(({ row }) => row.plannedAt <= before)
    .toSorted(
      (a, b) => a.row.plannedAt - b.row.plannedAt || compareText(a.key, b.key) || a.row.fireAt - b.row.fireAt,
    );
  for (const { ledger, row } of rows.slice(0, limit)) ledger.delete(row.fireAt);
  return rows.length > limit;
}

/** Terminal jobs past their retention, each state oldest first, then those with their own; a job that still holds a unique key stays. */
function* forgettable(data: Data, params: PruneParams, now: number): Generator<Row> {
  const { ended, forgetting } = data.indexes;
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
