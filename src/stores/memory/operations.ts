import { readCursor, writeCursor } from "../../cursor.ts";
import { hasNeedle, needlesOf } from "../../needle.ts";
import {
  type AuditEntry,
  type AuditFilter,
  type AuditPage,
  type AuditParams,
  type Depths,
  errorHeadLength,
  type JobSketch,
  type NewAuditEntry,
  type NoteParams,
  type PruneParams,
  type QueueDepth,
  type ScanFilter,
  type ScanParams,
  type ScanResult,
} from "../../store.ts";
import { compareText } from "./queues.ts";
import { type Row, toDate } from "./row.ts";
import { isWithin, matches } from "./select.ts";
import type { AuditRow, Space } from "./space.ts";

export function scan(space: Space, { filter, order, limit, lookAt, cursor }: ScanParams): ScanResult {
  const scope = { verb: "scan", order, namespace: space.namespace } as const;
  const from = cursor === null ? null : { order: readCursor(scope, cursor, 1)[0] ?? 0 };
  const rows = order === "oldest" ? space.inOrder.upward(from) : space.inOrder.downward(from);
  const found: Row[] = [];
  let looked = 0;
  let last = 0;
  for (const row of rows) {
    if (isPassedOver(row, filter)) continue;
    if (looked === lookAt || found.length === limit) {
      return { jobs: found.map(toSketch), looked, cursor: writeCursor(scope, [last]) };
    }
    looked += 1;
    last = row.order;
    if (matches(row, filter) && matchesScan(row, filter)) found.push(row);
  }
  return { jobs: found.map(toSketch), looked, cursor: null };
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

export function depths(space: Space, now: number): Depths {
  const queues = new Map<string, QueueDepth>();
  for (const { state, queue, runAt } of space.jobs.values()) {
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

export function note(space: Space, { ids, text }: NoteParams, now: number): void {
  for (const id of ids) {
    const row = space.resolve(id);
    if (row !== undefined) space.tell({ ...row, claimer: null }, now, "log", text);
  }
}

export function record(space: Space, entries: readonly NewAuditEntry[], now: number): void {
  for (const entry of entries) {
    const known = space.audit.get(entry.id);
    const { id, actor, action, target, reason, outcome } = entry;
    if (known !== undefined) space.audit.set(id, { ...known, outcome });
    else {
      space.lastAudit += 1;
      space.audit.set(id, { order: space.lastAudit, at: now, id, actor, action, target, reason, outcome });
    }
  }
}

export function audit(space: Space, { filter, limit, cursor }: AuditParams): AuditPage {
  const scope = { verb: "audit", order: "newest", namespace: space.namespace } as const;
  const [from = Number.POSITIVE_INFINITY] = cursor === null ? [] : readCursor(scope, cursor, 1);
  const rows = [...space.audit.values()]
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
export function pruneAudit(space: Space, { auditMs, limit }: PruneParams, now: number): boolean {
  if (auditMs === undefined) return false;
  const before = now - auditMs;
  const old = [...space.audit.values()]
    .filter(({ at }) => at <= before)
    .toSorted((a, b) => a.order - b.order);
  for (const { id } of old.slice(0, limit)) space.audit.delete(id);
  return old.length > limit;
}
