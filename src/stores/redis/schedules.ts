import { instantOf } from "../../mend.ts";
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
} from "../../store.ts";
import { checkPlace, JobFrames } from "./enqueue.ts";
import { compareText } from "./queues.ts";
import { bufferOf, pairsOf, type Space, spread } from "./space.ts";
import { marked, orInfinite, Reader, Writer } from "./wire.ts";

export async function putSchedule(space: Space, params: PutScheduleParams): Promise<PutScheduleResult> {
  const { key, spec, job, paused, nextAt, ifVersion, ifNextAt, skipped, node } = params;
  const rows = new Writer();
  for (const occurrence of skipped) writeOccurrence(rows, { ...occurrence, job: null });
  const head = [key, ifVersion ?? -1, paused ? 1 : 0, instantText(nextAt), spec, job];
  const args = [...head, node, skipped.length, rows.toBuffer(), instantText(ifNextAt)];
  const answer = await space.run("put-schedule", space.placeOfSchedule(key), ...args);
  const [put, text] = Array.isArray(answer) ? answer : [];
  const standing = bufferOf(text);
  return {
    outcome: put === 1 ? "put" : "conflict",
    schedule: standing.length === 0 ? null : readSchedule(key, standing),
  };
}

export async function removeSchedule(space: Space, key: string): Promise<boolean> {
  const [removed] = await space.numbers("remove-schedule", space.placeOfSchedule(key), key);
  return removed === 1;
}

export async function schedules(space: Space, keys: readonly string[] | null): Promise<ScheduleRecord[]> {
  const asked = keys === null ? "" : JSON.stringify([...new Set(keys)]);
  const lists = await Promise.all(space.everySlot.map((index) => space.list("schedules", index, asked)));
  return lists
    .flatMap((list) => pairsOf(list).map(([key, text]) => readSchedule(key, text)))
    .sort((a, b) => compareText(a.key, b.key));
}

export async function dueSchedules(space: Space, limit: number): Promise<DueSchedules> {
  const parts = await Promise.all(space.everySlot.map((index) => dueIn(space, index, limit)));
  const due = parts.flatMap((part) => part.due);
  if (space.slots > 1)
    due.sort((a, b) => orInfinite(a.nextAt) - orInfinite(b.nextAt) || compareText(a.key, b.key));
  const next = Math.min(...parts.map((part) => orInfinite(part.nextAt)));
  const now = Math.max(...parts.map((part) => part.now.getTime()));
  return {
    now: new Date(now),
    due: due.slice(0, limit),
    nextAt: Number.isFinite(next) ? instantOf(next) : null,
  };
}

async function dueIn(space: Space, index: number, limit: number): Promise<DueSchedules> {
  const [head = Buffer.alloc(16), ...list] = await space.list("due-schedules", index, limit);
  const reader = new Reader(head);
  return {
    now: new Date(reader.f64()),
    nextAt: reader.date(),
    due: pairsOf(list).map(([key, text]) => readSchedule(key, text)),
  };
}

/** One that is cut short is a schedule without rules, which nobody can plan, and takes no other with it. */
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
  const [version, fired] = [reader.f64(), reader.f64()];
  const [createdAt, updatedAt] = [instantOf(reader.f64()), instantOf(reader.f64())];
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
    createdAt,
    updatedAt,
  };
}

/** Where each schedule lies, its occurrences lie, too; those of one Redis slot are fired in one script. */
export function fire(space: Space, { node, fires }: FireParams): Promise<FireResult[]> {
  return spread(
    space,
    fires,
    ({ key }) => space.placeOfSchedule(key),
    async (part, index) => {
      const frames = new JobFrames();
      for (const one of part) writeFire(space, frames, one);
      const amount = part.reduce((sum, { occurrences: some }) => sum + some.length, 0);
      const reader = new Reader(
        await space.text("fire", index, node, part.length, amount, frames.toBuffer()),
      );
      return part.map(({ occurrences: some }): FireResult => {
        if (reader.u8() === 0) return { outcome: "stale", occurrences: [] };
        return { outcome: "fired", occurrences: some.map(() => (reader.u8() === 1 ? "added" : "existing")) };
      });
    },
  );
}

function writeFire(space: Space, frames: JobFrames, one: Fire): void {
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
    checkPlace(space, job, space.placeOfSchedule(one.key));
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

export async function occurrences(space: Space, params: OccurrencesParams): Promise<OccurrenceRecord[]> {
  const { key, from, to, limit } = params;
  const args = [key, from.getTime(), to.getTime(), limit];
  const rows = await space.list("occurrences", space.placeOfSchedule(key), ...args);
  return rows.map((row) => {
    const reader = new Reader(row);
    const fate = reader.u8() === 1 ? "skipped" : "planned";
    const [fireAt, until, count, plannedAt] = [
      instantOf(reader.f64()),
      reader.date(),
      reader.f64(),
      reader.f64(),
    ];
    const [reason, jobId, node] = [reader.marked(), reader.short(), reader.short()];
    return {
      key,
      fireAt,
      until,
      count,
      fate,
      reason,
      jobId: jobId === "" ? null : jobId,
      plannedAt: instantOf(plannedAt),
      node,
    };
  });
}

function instantText(instant: Date | null): string | number {
  return instant === null ? "inf" : instant.getTime();
}
