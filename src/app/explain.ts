import type { TrailLine } from "../client/decode.ts";
import type { Diagnosis } from "../diagnosis/diagnosis.ts";
import { lineOf } from "../diagnosis/sentence.ts";
import { formatDuration } from "../duration.ts";
import { describe, EscapementError } from "../errors.ts";
import { instantExample, parseInstant } from "../instant.ts";
import type { Job } from "../job.ts";
import { resolveSchedule } from "../planner/schedule-spec.ts";
import { commandFor } from "../runtime/shell-word.ts";
import { unreadableReason } from "../unreadable.ts";
import { explainRoute, type RouteFacts } from "./explain-route.ts";
import type { Occurrence } from "./occurrences.ts";
import type { Schedule } from "./schedule.ts";

/** What an explanation asks. */
export interface Explained extends RouteFacts {
  get(id: string): Promise<Job | null>;
  trail(id: string): Promise<TrailLine[]>;
  diagnose(id: string): Promise<Diagnosis | null>;
  getSchedule(key: string): Promise<Schedule | null>;
  occurrences(key: string, options: { from: Date; to: Date; limit: number }): Promise<Occurrence[]>;
}

const longestRangeMs = 366 * 86_400_000;

/** Tells the story of a job, or of an occurrence (`schedule@time`), a line each. */
export async function explain(app: Explained, target: string): Promise<string[]> {
  const job = await app.get(target);
  if (job !== null) return explainJob(app, job);
  const at = target.lastIndexOf("@");
  const time = target.slice(at + 1);
  const fireAt = at > 0 ? parseInstant(time) : null;
  if (fireAt === null) {
    const isDate = at > 0 && /^\d{4}-\d/.test(time);
    throw new EscapementError(
      "not-found",
      `there is no job ${JSON.stringify(target)}${isDate ? `, and ${describe(time)} is not a time` : ""}; for an occurrence write schedule@time, such as nightly@${instantExample}`,
    );
  }
  // The id of an occurrence's job has its schedule between braces.
  const key = target.slice(0, at).replace(/^\{(.+)\}$/, "$1");
  return explainOccurrence(app, key, fireAt);
}

async function explainOccurrence(app: Explained, key: string, fireAt: Date): Promise<string[]> {
  const to = new Date(fireAt.getTime() + 1);
  const row = await findRow(app, key, fireAt, to);
  if (row === undefined) return [await explainAbsent(app, key, fireAt)];
  const what = `occurrence of ${key} at ${iso(fireAt)}`;
  if (row.fate === "skipped") {
    const range =
      row.count === 1
        ? ""
        : ` (one of ${row.count} from ${iso(row.fireAt)} to ${iso(row.until ?? row.fireAt)})`;
    return [
      `${what}: skipped${range}`,
      `reason: ${row.reason ?? "unknown"}`,
      `recorded at ${iso(row.plannedAt)} by ${row.plannedBy}`,
      ...(await adviseBackfill(app, key, fireAt)),
    ];
  }
  const planned = `planned at ${iso(row.plannedAt)} by ${row.plannedBy}`;
  const job = row.jobId === null ? null : await app.get(row.jobId);
  if (job === null) return [`${what}: its job is no longer kept`, planned];
  const late = row.lateMs === null ? [] : [`claimed ${formatDuration(row.lateMs)} after its time`];
  return [what, planned, ...late, ...(await explainJob(app, job))];
}

/** A backfill needs the schedule, and plans only what is one of its times. */
async function adviseBackfill(app: Explained, key: string, fireAt: Date): Promise<string[]> {
  const schedule = await app.getSchedule(key);
  if (schedule === null || schedule.unreadable !== undefined || !isNominal(schedule, fireAt)) return [];
  const command = `schedules backfill --from ${iso(fireAt)} --to ${iso(fireAt)}`;
  return [`to run it after all: ${commandFor(command, key)}`];
}

function isNominal({ spec }: Schedule, fireAt: Date): boolean {
  return resolveSchedule(spec).times.next(fireAt.getTime() - 1) === fireAt.getTime();
}

/** The row of an occurrence: its own, or that of a range that began earlier. */
async function findRow(app: Explained, key: string, fireAt: Date, to: Date): Promise<Occurrence | undefined> {
  for (const spanMs of [0, 3_600_000, 86_400_000, longestRangeMs]) {
    const from = new Date(fireAt.getTime() - spanMs);
    const [row] = await app.occurrences(key, { from, to, limit: 1 });
    if (row !== undefined && (row.until ?? row.fireAt) >= fireAt) return row;
  }
  return undefined;
}

async function explainAbsent(app: Explained, key: string, fireAt: Date): Promise<string> {
  const schedule = await app.getSchedule(key);
  if (schedule === null)
    throw new EscapementError(
      "not-found",
      `there is no schedule ${JSON.stringify(key)}, and the ledger has nothing for it`,
    );
  if (schedule.unreadable !== undefined) return `${key} cannot be planned: ${schedule.unreadable}`;
  if (!isNominal(schedule, fireAt)) {
    const later = resolveSchedule(schedule.spec).times.next(fireAt.getTime());
    return `${key} does not fire at ${iso(fireAt)} by its rules; after that it fires at ${next(later)}`;
  }
  if (fireAt < schedule.createdAt) return `${key} was created later, at ${iso(schedule.createdAt)}`;
  if (schedule.paused) return `${key} is paused; what it skips is recorded when it is resumed`;
  return `nothing is recorded yet; the next time of ${key} is ${next(schedule.nextAt?.getTime() ?? null)}`;
}

async function explainJob(app: Explained, job: Job): Promise<string[]> {
  const lines = [
    `job ${job.id} (${job.name}, ${job.delivery}, queue ${job.queue})`,
    `${iso(job.enqueuedAt)} enqueued, due ${iso(job.fireAt)}${job.priority === 0 ? "" : `, priority ${job.priority}`}`,
  ];
  if (job.unreadable !== undefined)
    lines.push(`${unreadableReason(job.unreadable)}: something else has written to its row`);
  const trail = await app.trail(job.id);
  // Lines of the latest claim, and of what came after it, carry its token; those before it a lower one.
  const ofLatest = trail.findIndex(({ token }) => token >= job.token);
  const place = ofLatest === -1 ? trail.length : ofLatest;
  lines.push(...trail.slice(0, place).map(trailLine));
  if (job.claimedAt !== null)
    lines.push(`${iso(job.claimedAt)} ${claimed(job, trail[place]?.attempt ?? job.attempt)}`);
  lines.push(...trail.slice(place).map(trailLine));
  if (job.finishedAt !== null) lines.push(`${iso(job.finishedAt)} ended`);
  if (job.relayed) lines.push(...(await explainRoute(app, job)));
  lines.push(`now ${job.state}${job.reason === null ? "" : `: ${job.reason}`}`);
  const diagnosis = await app.diagnose(job.id);
  return [
    ...lines,
    ...(diagnosis?.causes ?? []).map((cause) => `  ${lineOf(cause)}`),
    ...adviseRedrive(job).map((line) => `  ${line}`),
  ];
}

function adviseRedrive({ id, state }: Job): string[] {
  const command = commandFor("jobs redrive", id);
  if (state === "dead") return [`fix what failed, then run it again: ${command}`];
  return state === "lost" ? [`it may have run; if it did not, run it again: ${command}`] : [];
}

function trailLine({ at, kind, attempt, claimer, text, error }: TrailLine): string {
  const who = kind === "failed" || kind === "crashed" ? ` attempt ${attempt} on ${claimer ?? "?"}` : "";
  const detail = [text, error === null ? null : `${error.name}: ${error.message}`].filter(
    (part) => part !== null,
  );
  return `${iso(at)} ${kind}${who}${detail.length === 0 ? "" : `: ${detail.join(", ")}`}`;
}

/** @param attempt as it was then: a rollback, a snooze and a release give the number back. A relay's attempts are counted by the token. */
function claimed({ relayed, claimer, token }: Job, attempt: number): string {
  if (relayed) return `named by ${claimer} (token ${token})`;
  return `claimed by ${claimer} (${attempt === 0 ? "" : `attempt ${attempt}, `}token ${token})`;
}

function next(instant: number | null): string {
  return instant === null ? "never" : iso(new Date(instant));
}

function iso(date: Date): string {
  return date.toISOString();
}
