import {
  endedStates,
  follow,
  isIdle,
  isRedrivable,
  isTerminal,
  openStates,
  redrivableStates,
} from "../../state.ts";
import type {
  CancelOutcome,
  RedriveOutcome,
  RemoveOutcome,
  SelectParams,
  SelectResult,
  UpdateParams,
  UpdateResult,
} from "../../store/jobs.ts";
import type { Data } from "./data/data.ts";
import { cancelIdle } from "./end.ts";
import { moved, uniqueHolder } from "./enqueue.ts";
import { forEachSelected } from "./questions.ts";
import { holdsUniqueKey, type Row } from "./rows.ts";
import type { Session } from "./session.ts";

export function update({ data, now }: Session, params: UpdateParams): UpdateResult {
  const row = data.resolve(params.id);
  if (row === undefined) return { outcome: "unknown", state: null };
  if (!isIdle(row.state)) return { outcome: "refused", state: row.state };
  const runAt = params.runAt?.getTime() ?? (params.delayMs === undefined ? undefined : now + params.delayMs);
  data.tell(row, now, "updated", null);
  data.write(row, {
    ...(runAt === undefined ? {} : moved(row, runAt)),
    ...(params.input === undefined ? {} : { input: params.input }),
    ...(params.priority === undefined ? {} : { priority: params.priority }),
    ...(params.concurrencyKey === undefined ? {} : { concurrencyKey: params.concurrencyKey }),
    ...(params.rateKey === undefined ? {} : { rateKey: params.rateKey }),
    version: row.version + 1,
  });
  return { outcome: "updated", state: row.state };
}

export function cancel({ data, now }: Session, params: SelectParams): SelectResult<CancelOutcome> {
  return forEachSelected(data, params, openStates, (row) => {
    if (isTerminal(row.state)) return "terminal";
    if (row.state !== "active") {
      cancelIdle(data, row, "cancel", params.reason, now);
      return "cancelled";
    }
    if (!row.cancelRequested) {
      data.tell(row, now, "cancel-requested", params.reason);
      data.write(row, { cancelRequested: true, reason: params.reason });
    }
    data.notices.draft.cancelRequested(row.id);
    return "requested";
  });
}

export function redrive({ data, now }: Session, params: SelectParams): SelectResult<RedriveOutcome> {
  return forEachSelected(data, params, redrivableStates, (row) => {
    if (!isRedrivable(row.state)) return "refused";
    return redriveOne(data, row, params.reason, now);
  });
}

export function remove({ data, now }: Session, params: SelectParams): SelectResult<RemoveOutcome> {
  return forEachSelected(data, params, endedStates, (row) => {
    if (!isTerminal(row.state)) return "refused";
    if (holdsUniqueKey(row, now)) return "held";
    data.forget(row);
    return "deleted";
  });
}

function redriveOne(data: Data, row: Row, reason: string | null, now: number): "redriven" | "held" {
  if (row.unique !== null) {
    const holder = uniqueHolder(data, row.unique.key, now);
    if (holder !== undefined && holder !== row) return "held";
    data.uniques.set(row.unique.key, row.id);
  }
  data.tell(row, now, "redriven", reason);
  data.write(row, {
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
