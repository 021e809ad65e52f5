import { readCursor, writeCursor } from "../../cursor.ts";
import { instantOf } from "../../mend.ts";
import { needlesOf } from "../../needle.ts";
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
  type StoredJob,
} from "../../store.ts";
import { filterJson } from "./filter.ts";
import { compareText } from "./queues.ts";
import { type FoundJob, readStored } from "./record.ts";
import { type Space, spread } from "./space.ts";
import { Reader } from "./wire.ts";

/** How many jobs one script looks at: it keeps the server for itself meanwhile. */
const lookAtPerScript = 2_000;
/** A character takes at most four bytes. */
const errorBytes = 4 * errorHeadLength;

interface SlotScan {
  readonly found: readonly FoundJob[];
  readonly looked: number;
  /** The seq to go on behind; null when all was looked at. */
  readonly next: number | null;
}

async function scanSlot(space: Space, index: number, params: ScanParams, from: number): Promise<SlotScan> {
  const { filter, order, limit, lookAt } = params;
  const terms = termsOf(filter);
  const found: FoundJob[] = [];
  let looked = 0;
  let cursor = from;
  do {
    const json = {
      ...terms,
      limit: limit - found.length,
      lookAt: Math.min(lookAtPerScript, lookAt - looked),
      newest: order === "newest",
      cursor,
    };
    const reader = new Reader(await space.text("scan", index, JSON.stringify(json), errorBytes));
    const next = reader.f64();
    looked += reader.f64();
    while (!reader.isAtEnd) found.push(readStored(reader));
    if (next === 0) return { found, looked, next: null };
    cursor = next;
  } while (found.length < limit && looked < lookAt);
  return { found, looked, next: cursor };
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

/** Slots know nothing of each other's order; within one, it is the order of enqueueing. */
export async function scan(space: Space, params: ScanParams): Promise<ScanResult> {
  const { order, limit, cursor } = params;
  const [start, end] = order === "newest" ? [Number.MAX_SAFE_INTEGER, 0] : [0, Number.MAX_SAFE_INTEGER];
  const scope = { verb: "scan", order, namespace: space.keyPrefix(0) } as const;
  const from = cursor === null ? [] : readCursor(scope, cursor, space.slots);
  const share = { ...params, lookAt: Math.max(1, Math.floor(params.lookAt / space.slots)) };
  const scans = await Promise.all(
    space.everySlot.map((index) => scanSlot(space, index, share, from[index] ?? start)),
  );
  const merged = scans.flatMap(({ found }, index) => found.map((one) => ({ ...one, index })));
  if (space.slots > 1) {
    const sign = order === "newest" ? -1 : 1;
    merged.sort(
      (a, b) =>
        sign *
        (a.job.enqueuedAt.getTime() - b.job.enqueuedAt.getTime() || a.index - b.index || a.seq - b.seq),
    );
  }
  const page = merged.slice(0, limit);
  const places = scans.map(({ found, next }, index) => {
    const used = page.filter((one) => one.index === index);
    if (used.length < found.length) return used.at(-1)?.seq ?? from[index] ?? start;
    return next ?? end;
  });
  const isDone = places.every((place) => place === end);
  return {
    jobs: page.map(({ job }) => toSketch(job)),
    looked: scans.reduce((sum, { looked }) => sum + looked, 0),
    cursor: isDone ? null : writeCursor(scope, places),
  };
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

/** How many relayed jobs, and jobs with a key, one script looks at. */
const mostDueRead = 5_000;

export async function depths(space: Space): Promise<Depths> {
  const answers = await Promise.all(space.everySlot.map((index) => space.text("depths", index, mostDueRead)));
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

export async function note(space: Space, { ids, text }: NoteParams): Promise<void> {
  await spread(
    space,
    ids,
    (id) => space.placeOf(id),
    async (part, index) => {
      await space.run("note", index, JSON.stringify(part), text);
      return part;
    },
  );
}

/** The audit log is of no slot; it is kept in the first. */
export async function record(space: Space, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const json = entries.map(({ id, actor, action, target, reason, outcome }) => [
    id,
    outcome ?? false,
    JSON.stringify({ id, actor, action, target, reason }),
  ]);
  await space.run("record", 0, JSON.stringify(json));
}

const auditPiece = 1_000;

export async function audit(space: Space, { filter, limit, cursor }: AuditParams): Promise<AuditPage> {
  const scope = { verb: "audit", order: "newest", namespace: space.keyPrefix(0) } as const;
  const found: { number: number; entry: AuditEntry }[] = [];
  let below: number | "" = cursor === null ? "" : (readCursor(scope, cursor, 1)[0] ?? "");
  while (below !== 0 && found.length <= limit) {
    const [next, ...rows] = await space.list("audit", 0, below, auditPiece);
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

/** Null for what something else has written there. */
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
export async function pruneAudit(space: Space, { auditMs, limit }: PruneParams): Promise<boolean> {
  if (auditMs === undefined) return false;
  return (await space.numbers("prune-audit", 0, Math.trunc(auditMs), limit))[0] === 1;
}
