import type {
  AuditEntry,
  AuditFilter,
  AuditPage,
  AuditParams,
  NewAuditEntry,
  NoteParams,
} from "../../store/audit.ts";
import type { StoredJob } from "../../store/jobs.ts";
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
import { instantOf } from "../../unreadable.ts";
import { type CursorScope, readCursor, writeCursor } from "../cursor.ts";
import { needlesOf } from "../needle.ts";
import { type ScanPlace, scopeOf } from "../scan-place.ts";
import { Reader } from "./connection/wire.ts";
import { filterJson } from "./jobs/filter.ts";
import { compareText } from "./queues.ts";
import { type FoundJob, readStored } from "./rows.ts";
import { type Session, spread } from "./session.ts";

/** How many jobs one script looks at: it blocks the server while it runs. */
const lookAtPerScript = 2_000;
/** A character takes at most four bytes. */
const errorBytes = 4 * errorHeadLength;

interface SlotScan {
  readonly found: readonly FoundJob[];
  readonly looked: number;
  /** Where to continue; null when all was examined. */
  readonly next: ScanPlace | null;
}

async function scanSlot(
  session: Session,
  index: number,
  params: ScanParams,
  from: ScanPlace,
): Promise<SlotScan> {
  const { filter, order, limit, lookAt, by } = params;
  const terms = termsOf(filter);
  const found: FoundJob[] = [];
  let looked = 0;
  let place = from;
  do {
    const json = {
      ...terms,
      limit: limit - found.length,
      lookAt: Math.min(lookAtPerScript, lookAt - looked),
      newest: order === "newest",
      byEnd: by === "ended",
      at: place.at,
      cursor: place.seq,
    };
    const reader = new Reader(await session.text("scan", index, JSON.stringify(json), errorBytes));
    const hasMore = reader.f64() === 1;
    looked += reader.f64();
    place = { at: reader.f64(), seq: reader.f64() };
    while (!reader.isAtEnd) found.push(readStored(reader));
    if (!hasMore) return { found, looked, next: null };
  } while (found.length < limit && looked < lookAt);
  return { found, looked, next: place };
}

function termsOf(filter: ScanFilter): object {
  const { endedAfter, endedBefore, error, text } = filter;
  return {
    filter: filterJson(filter),
    ...(endedAfter === undefined ? {} : { endedAfter: endedAfter.getTime() }),
    ...(endedBefore === undefined ? {} : { endedBefore: endedBefore.getTime() }),
    ...(error === undefined ? {} : { error: needlesOf(error) }),
    ...(text === undefined ? {} : { text: needlesOf(text) }),
  };
}

const first: ScanPlace = { at: 0, seq: 0 };
const last: ScanPlace = { at: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/** Slots know nothing of each other's order; within one, it is the order of enqueueing, or of ends. */
export async function scan(session: Session, params: ScanParams): Promise<ScanResult> {
  const { order, limit, by } = params;
  const [start, end] = order === "newest" ? [last, first] : [first, last];
  const scope = scopeOf(params, session.keyPrefix(0));
  const from = params.cursor === null ? [] : readPlaces(scope, params.cursor, session.slots);
  const share = { ...params, lookAt: Math.max(1, Math.floor(params.lookAt / session.slots)) };
  const scans = await Promise.all(
    session.everySlot.map((index) => scanSlot(session, index, share, from[index] ?? start)),
  );
  const merged = scans.flatMap(({ found }, index) => found.map((one) => ({ ...one, index })));
  const timeOf = ({ job }: FoundJob): number =>
    (by === "ended" ? job.finishedAt : job.enqueuedAt)?.getTime() ?? 0;
  if (session.slots > 1) {
    const sign = order === "newest" ? -1 : 1;
    merged.sort((a, b) => sign * (timeOf(a) - timeOf(b) || a.index - b.index || a.seq - b.seq));
  }
  // An end from one slot is returned when every other slot has come as far.
  const isReached = by === "ended" && session.slots > 1 ? reachedBy(scans, order) : () => true;
  const page = merged.filter((one) => isReached(timeOf(one))).slice(0, limit);
  const places = scans.map(({ found, next }, index) => {
    const used = page.filter((one) => one.index === index);
    if (used.length === found.length) return next ?? end;
    const lastUsed = used.at(-1);
    return lastUsed === undefined ? (from[index] ?? start) : { at: timeOf(lastUsed), seq: lastUsed.seq };
  });
  return {
    jobs: page.map(({ job }) => toSketch(job)),
    looked: scans.reduce((sum, { looked }) => sum + looked, 0),
    cursor: places.every((place) => place === end) ? null : writePlaces(scope, places),
  };
}

function reachedBy(scans: readonly SlotScan[], order: ScanParams["order"]): (at: number) => boolean {
  const reached = scans.flatMap(({ next }) => next?.at ?? []);
  return order === "oldest" ? (at) => at <= Math.min(...reached) : (at) => at >= Math.max(...reached);
}

/** Of every slot: its seq, or its end and seq. */
function readPlaces(scope: CursorScope, cursor: string, slots: number): ScanPlace[] {
  if (scope.verb === "scan") return readCursor(scope, cursor, slots).map((seq) => ({ at: 0, seq }));
  const numbers = readCursor(scope, cursor, 2 * slots);
  return Array.from({ length: slots }, (_, index) => ({
    at: numbers[2 * index] ?? 0,
    seq: numbers[2 * index + 1] ?? 0,
  }));
}

function writePlaces(scope: CursorScope, places: readonly ScanPlace[]): string {
  const numbers = places.flatMap(({ at, seq }) => (scope.verb === "scan" ? [seq] : [at, seq]));
  return writeCursor(scope, numbers);
}

function toSketch(job: StoredJob): JobSketch {
  const { id, name, queue, delivery, priority, tags, state, attempt, attempts, redrives } = job;
  const { runAt, enqueuedAt, claimedAt, finishedAt, claimer, reason } = job;
  return {
    id,
    name,
    queue,
    delivery,
    priority,
    tags,
    state,
    attempt,
    attempts,
    redrives,
    runAt,
    enqueuedAt,
    claimedAt,
    finishedAt,
    claimer,
    reason,
    errorHead: job.error?.slice(0, errorHeadLength) ?? null,
  };
}

/** How many relayed and keyed jobs one script looks at. */
const mostDueRead = 5_000;

export async function depths(session: Session): Promise<Depths> {
  const answers = await Promise.all(
    session.everySlot.map((index) => session.text("depths", index, mostDueRead)),
  );
  const queues = new Map<string, QueueDepth>();
  let now = 0;
  for (const answer of answers) {
    const reader = new Reader(answer);
    now = Math.max(now, reader.f64());
    const isExact = reader.u8() === 1;
    while (!reader.isAtEnd) addDepth(queues, reader, isExact);
  }
  const sorted = [...queues.values()].sort((a, b) => compareText(a.queue, b.queue));
  return { now: instantOf(now), queues: sorted };
}

function addDepth(queues: Map<string, QueueDepth>, reader: Reader, isExact: boolean): void {
  const queue = reader.short();
  const [waiting, due, active, blocked, first] = [
    reader.f64(),
    reader.f64(),
    reader.f64(),
    reader.f64(),
    reader.f64(),
  ];
  const none = { queue, due: 0, later: 0, active: 0, blocked: 0, oldestDueAt: null, isExact: true };
  const depth = queues.get(queue) ?? none;
  const oldest = Math.min(depth.oldestDueAt?.getTime() ?? Number.POSITIVE_INFINITY, first);
  queues.set(queue, {
    queue,
    due: depth.due + due,
    later: depth.later + waiting - due,
    active: depth.active + active,
    blocked: depth.blocked + blocked,
    oldestDueAt: Number.isFinite(oldest) ? instantOf(oldest) : null,
    isExact: depth.isExact && isExact,
  });
}

export async function note(session: Session, { ids, text }: NoteParams): Promise<void> {
  await spread(
    session,
    ids,
    (id) => session.placeOf(id),
    async (part, index) => {
      await session.run("note", index, JSON.stringify(part), text);
      return part;
    },
  );
}

/** The audit log belongs to no slot; it is kept in the first. */
export async function record(
  session: Session,
  { entries }: { readonly entries: readonly NewAuditEntry[] },
): Promise<void> {
  if (entries.length === 0) return;
  const json = entries.map(({ id, actor, action, target, reason, outcome }) => [
    id,
    outcome ?? false,
    JSON.stringify({ id, actor, action, target, reason }),
  ]);
  await session.run("record", 0, JSON.stringify(json));
}

const auditPiece = 1_000;

export async function audit(session: Session, { filter, limit, cursor }: AuditParams): Promise<AuditPage> {
  const scope = { verb: "audit", order: "newest", namespace: session.keyPrefix(0) } as const;
  const found: { number: number; entry: AuditEntry }[] = [];
  let below: number | "" = cursor === null ? "" : (readCursor(scope, cursor, 1)[0] ?? "");
  while (below !== 0 && found.length <= limit) {
    const [next, ...rows] = await session.list("audit", 0, below, auditPiece);
    below = Number(next);
    for (let place = 0; place + 2 < rows.length; place += 3) {
      const entry = readEntry(rows[place + 1], rows[place + 2]);
      if (entry !== null && isAsked(entry, filter)) found.push({ number: Number(rows[place]), entry });
    }
  }
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const more = found.length > limit && last !== undefined;
  return {
    entries: page.map(({ entry }) => entry),
    cursor: more ? writeCursor(scope, [last.number]) : null,
  };
}

/** Null for what another program has written there. */
function readEntry(text: Buffer | undefined, outcome: Buffer | undefined): AuditEntry | null {
  if (text === undefined || outcome === undefined) return null;
  try {
    const reader = new Reader(text);
    const at = instantOf(reader.f64());
    const { id, actor, action, target, reason }: Record<string, unknown> = JSON.parse(reader.rest());
    return {
      at,
      id: String(id),
      actor: String(actor),
      action: String(action),
      target: String(target),
      reason: typeof reason === "string" ? reason : null,
      outcome: outcome.length === 0 ? null : String(outcome).slice(1),
    };
  } catch {
    return null;
  }
}

function isAsked(entry: AuditEntry, { actors, actions, targets, after, before }: AuditFilter): boolean {
  return (
    (actors?.includes(entry.actor) ?? true) &&
    (actions?.includes(entry.action) ?? true) &&
    (targets?.includes(entry.target) ?? true) &&
    (after === undefined || entry.at >= after) &&
    (before === undefined || entry.at < before)
  );
}

/** Whether there are more. */
export async function pruneAudit(session: Session, { auditMs, limit }: PruneParams): Promise<boolean> {
  if (auditMs === undefined) return false;
  return (await session.numbers("prune-audit", 0, Math.trunc(auditMs), limit))[0] === 1;
}
