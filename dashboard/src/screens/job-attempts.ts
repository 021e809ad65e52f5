import type { JobStory } from "../api/answers.ts";

type Job = JobStory["job"];
type TrailLine = JobStory["trail"][number];

/** One claim: from when a node took the job until its end, or until now. */
export interface Attempt {
  readonly kind: "attempt";
  readonly key: string;
  readonly attempt: number;
  readonly token: number;
  readonly claimer: string | null;
  /** Known of the latest claim only; the trail has the ends of those before. */
  readonly claimedAt: string | null;
  readonly end: {
    readonly at: string;
    readonly what: string;
    readonly text: string | null;
    readonly error: TrailLine["error"];
  } | null;
  /** What it logged, and what was asked of it meanwhile. */
  readonly lines: readonly TrailLine[];
}

/** What happened between attempts: enqueued, edited, redriven, ended. */
export interface Event {
  readonly kind: "event";
  readonly key: string;
  readonly at: string;
  readonly what: string;
  readonly who: string | null;
  readonly text: string | null;
}

export type Step = Attempt | Event;

const endings: ReadonlySet<string> = new Set(["failed", "crashed", "snoozed", "rolled-back"]);
const between: ReadonlySet<string> = new Set(["updated", "redriven", "noted"]);
const ended: ReadonlySet<string> = new Set(["succeeded", "dead", "lost", "cancelled"]);

/**
 * The story of a job, the oldest first. The order is that of the trail and not only that of the times: all may happen in one millisecond, and a
 * claim still comes before its failure.
 */
export function stepsOf(job: Job, trail: JobStory["trail"]): Step[] {
  const steps: Step[] = [
    { kind: "event", key: "enqueued", at: job.enqueuedAt, what: "enqueued", who: null, text: null },
  ];
  const lines = trail.filter((line) => !isBetween(line));
  const byToken = Map.groupBy(lines, ({ token }) => token);
  const isLast = (token: number): boolean => token === job.token && job.claimedAt !== null;
  const seen = new Set<number>();
  for (const [place, line] of trail.entries()) {
    if (isBetween(line)) {
      // The latest claim may have left no line yet.
      if (isLast(job.token) && !seen.has(job.token) && !byToken.has(job.token) && isAfter(line, job)) {
        seen.add(job.token);
        steps.push(attemptOf(job, job.token, []));
      }
      steps.push(eventOf(line, place));
    } else if (!seen.has(line.token)) {
      seen.add(line.token);
      steps.push(attemptOf(job, line.token, byToken.get(line.token) ?? []));
    }
  }
  if (isLast(job.token) && !seen.has(job.token)) steps.push(attemptOf(job, job.token, []));
  // That it succeeded is said by its last attempt.
  const isSaid = job.state === "succeeded" && job.reason === null && job.claimedAt !== null;
  if (job.finishedAt !== null && ended.has(job.state) && !isSaid)
    steps.push({
      kind: "event",
      key: "ended",
      at: job.finishedAt,
      what: job.state,
      who: null,
      text: job.reason,
    });
  return steps;
}

/** A line that belongs to no claim. A person's log line has no claimer. */
function isBetween({ kind, claimer, token }: TrailLine): boolean {
  return between.has(kind) || token === 0 || (kind === "log" && claimer === null);
}

function isAfter({ at }: TrailLine, { claimedAt }: Job): boolean {
  return claimedAt !== null && Date.parse(at) > Date.parse(claimedAt);
}

function eventOf({ at, kind, text, claimer }: TrailLine, place: number): Event {
  return { kind: "event", key: `${place}`, at, what: kind === "log" ? "noted" : kind, who: claimer, text };
}

function attemptOf(job: Job, token: number, lines: readonly TrailLine[]): Attempt {
  const isLatest = token === job.token;
  const last = lines.findLast(({ kind }) => endings.has(kind));
  const [first] = lines;
  return {
    kind: "attempt",
    key: `token ${token}`,
    attempt: first?.attempt ?? job.attempt,
    token,
    claimer: first?.claimer ?? (isLatest ? job.claimer : null),
    claimedAt: isLatest ? job.claimedAt : null,
    end: last === undefined ? endOf(job, isLatest) : { ...last, what: last.kind },
    lines: lines.filter(({ kind }) => !endings.has(kind)),
  };
}

/** How the job itself ended its latest attempt: success leaves no line. */
function endOf({ state, finishedAt, error }: Job, isLatest: boolean): Attempt["end"] {
  if (!isLatest || finishedAt === null) return null;
  return { at: finishedAt, what: state, text: null, error: state === "succeeded" ? null : error };
}

/** How long an attempt took, in milliseconds, where both its ends are known. */
export function tookMs({ claimedAt, end }: Attempt, now: number): number | null {
  if (claimedAt === null) return null;
  return Math.max(0, (end === null ? now : Date.parse(end.at)) - Date.parse(claimedAt));
}
