import type {
  AuditEntry,
  AuditFilter,
  AuditPage,
  AuditParams,
  NewAuditEntry,
  NoteParams,
} from "../../store/audit.ts";
import {
  type Depths,
  errorHeadLength,
  type JobSketch,
  type QueueDepth,
  type ScanFilter,
  type ScanParams,
  type ScanResult,
} from "../../store/questions.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { hasNeedle, needlesOf } from "../needle.ts";
import { readPlace, type ScanPlace, scopeOf, writePlace } from "../scan-place.ts";
import type { AuditRow, Data } from "./data/data.ts";
import { endsOf } from "./data/ends.ts";
import { isWithin, matches } from "./questions.ts";
import { compareText } from "./queues.ts";
import { type Row, toDate } from "./rows.ts";
import type { Session } from "./session.ts";

export function scan({ data }: Session, params: ScanParams): ScanResult {
  const { filter, limit, lookAt } = params;
  const scope = scopeOf(params, data.namespace);
  const found: Row[] = [];
  let looked = 0;
  let last = { at: 0, seq: 0 };
  for (const row of inOrderOf(data, params, readPlace(scope, params.cursor))) {
    if (isPassedOver(row, filter)) continue;
    if (looked === lookAt || found.length === limit)
      return { jobs: found.map(toSketch), looked, cursor: writePlace(scope, last) };
    looked += 1;
    last = { at: row.finishedAt ?? 0, seq: row.order };
    if (matches(row, filter) && matchesScan(row, filter)) found.push(row);
  }
  return { jobs: found.map(toSketch), looked, cursor: null };
}

function inOrderOf(
  { indexes, inOrder }: Data,
  { by, order, filter }: ScanParams,
  from: ScanPlace | null,
): Generator<Row> {
  if (by === "ended") return endsOf(indexes, filter, order, from && { finishedAt: from.at, order: from.seq });
  const behind = from && { order: from.seq };
  return order === "oldest" ? inOrder.upward(behind) : inOrder.downward(behind);
}

function isPassedOver(row: Row, { states, ids }: ScanFilter): boolean {
  return !((states?.includes(row.state) ?? true) && (ids?.includes(row.id) ?? true));
}

function matchesScan(row: Row, { endedAfter, endedBefore, error, text }: ScanFilter): boolean {
  if (endedAfter !== undefined || endedBefore !== undefined) {
    if (row.finishedAt === null || !isWithin(row.finishedAt, endedAfter, endedBefore)) return false;
  }
  const failure = [row.reason, row.error];
  return has(failure, error) && has([row.input, ...row.tags, ...failure], text);
}

function has(texts: readonly (string | null)[], wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const needles = needlesOf(wanted);
  return texts.some((text) => hasNeedle(text, needles));
}

function toSketch(row: Row): JobSketch {
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    delivery: row.delivery,
    priority: row.priority,
    tags: [...row.tags],
    state: row.state,
    attempt: row.attempt,
    attempts: row.attempts,
    redrives: row.redrives,
    runAt: new Date(row.runAt),
    enqueuedAt: new Date(row.enqueuedAt),
    claimedAt: toDate(row.claimedAt),
    finishedAt: toDate(row.finishedAt),
    claimer: row.claimer,
    reason: row.reason,
    errorHead: row.error?.slice(0, errorHeadLength) ?? null,
  };
}

export function depths({ data, now }: Session): Depths {
  const queues = new Map<string, QueueDepth>();
  for (const { state, queue, runAt } of data.jobs.values()) {
    if (state !== "waiting" && state !== "active" && state !== "blocked") continue;
    const depth = queues.get(queue) ?? {
      queue,
      due: 0,
      later: 0,
      active: 0,
      blocked: 0,
      oldestDueAt: null,
      isExact: true,
    };
    const isDue = state === "waiting" && runAt <= now;
    const counted = state !== "waiting" ? state : isDue ? "due" : "later";
    const isOldest = isDue && (depth.oldestDueAt === null || runAt < depth.oldestDueAt.getTime());
    queues.set(queue, {
      ...depth,
      [counted]: depth[counted] + 1,
      ...(isOldest ? { oldestDueAt: new Date(runAt) } : {}),
    });
  }
  const sorted = [...queues.values()].toSorted((a, b) => compareText(a.queue, b.queue));
  return { now: new Date(now), queues: sorted };
}

export function note({ data, now }: Session, { ids, text }: NoteParams): void {
  for (const id of ids) {
    const row = data.resolve(id);
    if (row !== undefined) data.tell({ ...row, claimer: null }, now, "log", text);
  }
}

export function record(
  { data, now }: Session,
  { entries }: { readonly entries: readonly NewAuditEntry[] },
): void {
  for (const entry of entries) {
    const known = data.audit.get(entry.id);
    const { id, actor, action, target, reason, outcome } = entry;
    if (known !== undefined) data.audit.set(id, { ...known, outcome });
    else {
      data.lastAudit += 1;
      data.audit.set(id, { order: data.lastAudit, at: now, id, actor, action, target, reason, outcome });
    }
  }
}

export function audit({ data }: Session, { filter, limit, cursor }: AuditParams): AuditPage {
  const scope = { verb: "audit", order: "newest", namespace: data.namespace } as const;
  const [from = Number.POSITIVE_INFINITY] = cursor === null ? [] : readCursor(scope, cursor, 1);
  const rows = [...data.audit.values()]
    .filter((row) => row.order < from && isAsked(row, filter))
    .toSorted((a, b) => b.order - a.order);
  const page = rows.slice(0, limit);
  return {
    entries: page.map(toEntry),
    cursor: rows.length > limit ? writeCursor(scope, [page.at(-1)?.order ?? 0]) : null,
  };
}

function isAsked(row: AuditRow, { actors, actions, targets, after, before }: AuditFilter): boolean {
  return (
    (actors?.includes(row.actor) ?? true) &&
    (actions?.includes(row.action) ?? true) &&
    (targets?.includes(row.target) ?? true) &&
    isWithin(row.at, after, before)
  );
}

function toEntry({ at, id, actor, action, target, reason, outcome }: AuditRow): AuditEntry {
  return { at: new Date(at), id, actor, action, target, reason, outcome };
}

/** Whether there are more. */
export function pruneAudit({ data, now }: Session, { auditMs, limit }: PruneParams): boolean {
  if (auditMs === undefined) return false;
  const before = now - auditMs;
  const old = [...data.audit.values()].filter(({ at }) => at <= before).toSorted((a, b) => a.order - b.order);
  for (const { id } of old.slice(0, limit)) data.audit.delete(id);
  return old.length > limit;
}
