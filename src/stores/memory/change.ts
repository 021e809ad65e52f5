import { endedStates, follow, isTerminal } from "../../state.ts";
import type {
  CancelOutcome,
  RedriveOutcome,
  RemoveOutcome,
  SelectParams,
  SelectResult,
  UpdateParams,
  UpdateResult,
} from "../../store.ts";
import { cancelIdle } from "./end.ts";
import { moved, uniqueHolder } from "./enqueue.ts";
import { holdsUniqueKey, type Row } from "./row.ts";
import { forEachSelected } from "./select.ts";
import type { Space } from "./space.ts";

export function update(space: Space, params: UpdateParams, now: number): UpdateResult {
  const row = space.resolve(params.id);
  if (row === undefined) return { outcome: "unknown", state: null };
  if (row.state !== "waiting" && row.state !== "blocked") return { outcome: "refused", state: row.state };
  const runAt = params.runAt?.getTime() ?? (params.delayMs === undefined ? undefined : now + params.delayMs);
  space.tell(row, now, "updated", null);
  space.write(row, {
    ...(runAt === undefined ? {} : moved(row, runAt)),
    ...(params.input === undefined ? {} : { input: params.input }),
    ...(params.priority === undefined ? {} : { priority: params.priority }),
    ...(params.concurrencyKey === undefined ? {} : { concurrencyKey: params.concurrencyKey }),
    ...(params.rateKey === undefined ? {} : { rateKey: params.rateKey }),
    version: row.version + 1,
  });
  return { outcome: "updated", state: row.state };
}

export function cancel(space: Space, params: SelectParams, now: number): SelectResult<CancelOutcome> {
  return forEachSelected(space, params, ["blocked", "waiting", "active"], (row) => {
    if (isTerminal(row.state)) return "terminal";
    if (row.state !== "active") {
      cancelIdle(space, row, "cancel", params.reason, now);
      return "cancelled";
    }
    if (!row.cancelRequested) {
      space.tell(row, now, "cancel-requested", params.reason);
      space.write(row, { cancelRequested: true, reason: params.reason });
    }
    space.notices.cancelRequested(row.id);
    return "requested";
  });
}

export function redrive(space: Space, params: SelectParams, now: number): SelectResult<RedriveOutcome> {
  return forEachSelected(space, params, ["dead", "lost"], (row) => {
    if (row.state !== "dead" && row.state !== "lost") return "refused";
    return redriveOne(space, row, params.reason, now);
  });
}

export function remove(space: Space, params: SelectParams, now: number): SelectResult<RemoveOutcome> {
  return forEachSelected(space, params, endedStates, (row) => {
    if (!isTerminal(row.state)) return "refused";
    if (holdsUniqueKey(row, now)) return "held";
    space.forget(row);
    return "deleted";
  });
}

function redriveOne(space: Space, row: Row, reason: string | null, now: number): "redriven" | "held" {
  if (row.unique !== null) {
    const holder = uniqueHolder(space, row.unique.key, now);
    if (holder !== undefined && holder !== row) return "held";
    space.uniques.set(row.unique.key, row.id);
  }
  space.tell(row, now, "redriven", reason);
  space.write(row, {
    state: follow(row.state, "redrive"),
    runAt: now,
    attempt: 0,
    crashes: 0,
    reason: null,
    expireAt: null,
    finishedAt: null,
    redrives: row.redrives + 1,
  });
  return "redriven";
}
