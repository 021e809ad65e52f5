import type { JobState } from "../job.ts";
import type { JobSummary } from "../operations/find-jobs.ts";
import { isTerminal } from "../state.ts";
import { type Cell, type Line, Painted, type Style, table } from "./output.ts";
import { away } from "./times.ts";

const styles: Readonly<Partial<Record<JobState, Style>>> = {
  active: "cyan",
  succeeded: "green",
  dead: "red",
  lost: "magenta",
  blocked: "dim",
  cancelled: "dim",
};

export function paintState(state: JobState): Cell {
  const style = styles[state];
  return style === undefined ? state : new Painted(state, style);
}

/** Jobs under headings. */
export function jobTable(jobs: readonly JobSummary[], now: Date): Line[] {
  return table(
    ["id", "job", "queue", "state", "attempt", "when", ""],
    jobs.map((job) => [
      job.id,
      job.name,
      job.queue,
      paintState(job.state),
      attemptOf(job),
      whenOf(job, now),
      whyOf(job),
    ]),
    { whole: ["id"], importance: ["id", "state", "job", "", "when", "queue", "attempt"] },
  );
}

/** Which attempt of how many; a job that runs at most once has one. */
export function attemptOf({ attempt, attempts, delivery }: JobSummary): string {
  return `${attempt}/${delivery === "at-most-once" ? 1 : attempts}`;
}

/** The time that matters in its state: its end, its start, or when it is due. */
function whenOf({ state, finishedAt, claimedAt, runAt }: JobSummary, now: Date): string {
  if (isTerminal(state)) return finishedAt === null ? "" : away(finishedAt, now);
  if (state === "active") return claimedAt === null ? "" : away(claimedAt, now);
  return state === "blocked" ? "" : away(runAt, now);
}

/** What went wrong, if anything did. An error of an earlier attempt says nothing about a job that succeeded. */
export function whyOf({ state, reason, error }: JobSummary): string {
  if (state === "succeeded") return "";
  const [line = ""] = (error?.message ?? "").split("\n");
  if (error !== null && state !== "cancelled") return `${error.name}: ${line}`;
  return reason ?? "";
}
