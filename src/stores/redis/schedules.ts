import type {
  DueSchedules,
  Fire,
  FireParams,
  FireResult,
  NewOccurrence,
  OccurrenceRecord,
  OccurrencesParams,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "../../store/schedules.ts";
import { instantOf } from "../../unreadable.ts";
import { marked, orInfinite, Reader, Writer } from "./connection/wire.ts";
import { checkPlace, JobFrames } from "./enqueue.ts";
import { compareText } from "./queues.ts";
import { bufferOf, pairsOf, type Session, spread } from "./session.ts";

export async function putSchedule(session: Session, params: PutScheduleParams): Promise<PutScheduleResult> {
  const { key, spec, job, paused, nextAt, ifVersion, ifNextAt, skipped, node } = params;
  const rows = new Writer();
  for (const occurrence of skipped) writeOccurrence(rows, { ...occurrence, job: null });
  const head = [key, ifVersion ?? -1, paused ? 1 : 0, instantText(nextAt), spec, job];
  const args = [...head, node, skipped.length, rows.toBuffer(), instantText(ifNextAt)];
  const answer = await session.run("put-schedule", session.placeOfSchedule(key), ...args);
  const [put, text] = Array.isArray(answer) ? answer : [];
  const standing = bufferOf(text);
  return {
    outcome: put === 1 ? "put" : "conflict",
    schedule: standing.length === 0 ? null : readSchedule(key, standing),
  };
}

export async function removeSchedule(session: Session, { key }: { readonly key: string }): Promise<boolean> {
  const [removed] = await session.numbers("remove-schedule", session.placeOfSchedule(key), key);
  return removed === 1;
}

export async function schedules(
  session: Session,
  { keys }: { readonly keys: readonly string[] | null },
): Promise<ScheduleRecord[]> {
  const asked = keys === null ? "" : JSON.stringify([...new Set(keys)]);
  const lists = await Promise.all(session.everySlot.map((index) => session.list("schedules", index, asked)));
  return lists
    .flatMap((list) => pairsOf(list).map(([key, text]) => readSchedule(key, text)))
    .sort((a, b) => compareText(a.key, b.key));
}

export async function dueSchedules(
  session: Session,
  { limit }: { readonly limit: number },
): Promise<DueSchedules> {
  const parts = await Promise.all(session.everySlot.map((index) => dueIn(session, index, limit)));
  const due = parts.flatMap((part) => part.due);
  if (session.slots > 1)
    due.sort((a, b) => orInfinite(a.nextAt) - orInfinite(b.nextAt) || compareText(a.key, b.key));
  const next = Math.min(...parts.map((part) => orInfinite(part.nextAt)));
  const now = Math.max(...parts.map((part) => part.now.getTime()));
  return {
    now: new Date(now),
    due: due.slice(0, limit),
    nextAt: Number.isFinite(next) ? instantOf(next) : null,
  };
}

async function dueIn(session: Session, index: number, limit: number): Promise<DueSchedules> {
  const [head = Buffer.alloc(16), ...list] = await session.list("due-schedules", index, limit);
  const reader = new Reader(head);
  return {
    now: new Date(reader.f64()),
    nextAt: reader.date(),
    due: pairsOf(list).map(([key, text]) => readSchedule(key, text)),
  };
}

/** A truncated one is a schedule without rules, which cannot be planned, and does not affect the others. */
function readSchedule(key: string, text: Buffer): ScheduleRecord {
  try {
    return readWhole(key, text);
  } catch {
    const none = {
      spec: "",
      job: "",
      nextAt: null,
      lastJobId: null,
      createdAt: new Date(0),
      updatedAt: new Date(0),
    };
    return { key, ...none, paused: false, version: 0, fired: 0 };
  }
}

function readWhole(key: string, text: Buffer): ScheduleRecord {
  const reader = new Reader(text);
  const paused = reader.u8() === 1;
  const nextAt = reader.date();
  const [version, fired, createdAt, updatedAt] = [reader.f64(), reader.f64(), reader.f64(), reader.f64()];
  const lastJobId = reader.short();
  return {
    key,
    spec: reader.long(),
    job: reader.long(),
    paused,
    nextAt,
    version,
    fired,
    lastJobId: lastJobId === "" ? null : lastJobId,
    createdAt: instantOf(createdAt),
    updatedAt: instantOf(updatedAt),
  };
}

/** Occurrences are in the slot of their schedule; those of one Redis slot are fired in one script. */
export function fire(session: Session, { node, fires }: FireParams): Promise<FireResult[]> {
  return spread(
    session,
    fires,
    ({ key }) => session.placeOfSchedule(key),
    async (part, index) => {
      const frames = new JobFrames();
      for (const one of part) writeFire(session, frames, one);
      const amount = part.reduce((sum, { occurrences: some }) => sum + some.length, 0);
      const reader = new Reader(
        await session.text("fire", index, node, part.length, amount, frames.toBuffer()),
      );
      return part.map(({ occurrences: some }): FireResult => {
        if (reader.u8() === 0) return { outcome: "stale", occurrences: [] };
        return { outcome: "fired", occurrences: some.map(() => (reader.u8() === 1 ? "added" : "existing")) };
      });
    },
  );
}

function writeFire(session: Session, frames: JobFrames, one: Fire): void {
  frames.writer
    .short(one.key)
    .f64(one.version)
    .f64(orInfinite(one.nextAt))
    .f64(orInfinite(one.advanceTo))
    .u8(one.replaceSkipped ? 1 : 0)
    .u32(one.occurrences.length);
  for (const occurrence of one.occurrences) {
    const { job } = occurrence;
    writeOccurrence(frames.writer, occurrence);
    if (job === null) continue;
    checkPlace(session, job, session.placeOfSchedule(one.key));
    frames.writer.short(job.id);
    frames.add(job);
  }
}

function writeOccurrence(writer: Writer, occurrence: NewOccurrence): void {
  writer
    .f64(occurrence.fireAt.getTime())
    .f64(orInfinite(occurrence.until))
    .f64(occurrence.count)
    .u8(occurrence.fate === "skipped" ? 1 : 0)
    .long(marked(occurrence.reason))
    .u8(occurrence.job === null ? 0 : 1);
}

export async function occurrences(session: Session, params: OccurrencesParams): Promise<OccurrenceRecord[]> {
  const { key, from, to, limit } = params;
  const args = [key, from.getTime(), to.getTime(), limit];
  const list = await session.list("occurrences", session.placeOfSchedule(key), ...args);
  const rows = list.filter((_, index) => index % 2 === 0);
  return rows.map((row, index) => {
    try {
      return readOccurrence(key, new Reader(row));
    } catch {
      const fireAt = instantOf(Number(list[index * 2 + 1]));
      const reason = "unreadable: something else has written to this row";
      const fate = "skipped" as const;
      return { key, fireAt, until: null, count: 1, fate, reason, jobId: null, plannedAt: fireAt, node: "" };
    }
  });
}

function readOccurrence(key: string, reader: Reader): OccurrenceRecord {
  const fate = reader.u8() === 1 ? "skipped" : "planned";
  const fireAt = instantOf(reader.f64());
  const until = reader.date();
  const [count, plannedAt] = [reader.f64(), instantOf(reader.f64())];
  const [reason, jobId, node] = [reader.marked(), reader.short(), reader.short()];
  return { key, fireAt, until, count, fate, reason, jobId: jobId === "" ? null : jobId, plannedAt, node };
}

function instantText(instant: Date | null): string | number {
  return instant === null ? "inf" : instant.getTime();
}
