import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { EscapementError } from "../../errors.ts";
import { type FilterWords, filterOf } from "../../operations/filter-words.ts";
import type { JobSummary, JobsFilter } from "../../operations/find-jobs.ts";
import type { Operations } from "../../operations/operations.ts";
import { printableJson } from "../../runtime/printable.ts";
import { isTerminal } from "../../state.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { withFilter } from "../filter-flags.ts";
import { attemptOf, paintState, whyOf } from "../job-lines.ts";
import { type Line, render } from "../output.ts";
import { stopOnSignal } from "../stop-on-signal.ts";
import { duration } from "../times.ts";

interface TailFlags extends AppFlags, FilterWords {
  readonly every: number;
  readonly lines: number;
}

/** The newest jobs, among which changes are looked for. */
const watched = 2_000;

export function tailCommand(): Command {
  return withFilter(appCommand("tail", "show jobs as they change, or one job's story as it happens"))
    .argument("[id]", "the id of a job; it ends with the job")
    .option("--every <duration>", "how often to poll", duration, 1_000)
    .option("--lines <n>", "how many of the latest to start with", Number, 10)
    .action(async (id: string | undefined, flags: TailFlags) => {
      const stopping = stopOnSignal();
      await withOperations(flags, (operations, app) =>
        id === undefined
          ? tailAll(operations, filterOf(flags), flags, stopping)
          : tailOne(app, id, flags, stopping),
      );
    });
}

async function tailAll(
  operations: Operations,
  filter: JobsFilter,
  flags: TailFlags,
  stopping: AbortSignal,
): Promise<void> {
  const seen = new Map<string, string>();
  for (let isFirst = true; !stopping.aborted; isFirst = false) {
    const { jobs } = await operations.jobs(filter, { limit: watched, lookAt: watched });
    const changed = jobs.toReversed().filter((job) => seen.get(job.id) !== standing(job));
    const shown = isFirst ? changed.slice(Math.max(0, changed.length - flags.lines)) : changed;
    for (const job of shown) write(flags, job, jobLine(job));
    seen.clear();
    for (const job of jobs) seen.set(job.id, standing(job));
    await pause(flags.every, stopping);
  }
}

function standing({ state, attempt, finishedAt }: JobSummary): string {
  return `${state} ${attempt} ${finishedAt?.getTime() ?? ""}`;
}

function jobLine(job: JobSummary): Line {
  const state = paintState(job.state);
  const at = job.finishedAt ?? job.claimedAt ?? job.enqueuedAt;
  const why = whyOf(job);
  return [
    `${at.toISOString()} `,
    typeof state === "number" ? String(state) : state,
    ` ${job.name} ${job.id} attempt ${attemptOf(job)}${why === "" ? "" : ` ${why}`}`,
  ];
}

/** What is added to the explanation of a job, until it has ended. */
async function tailOne(app: Escapement, id: string, flags: TailFlags, stopping: AbortSignal): Promise<void> {
  let shown = 0;
  let progress = "null";
  let state = "";
  while (!stopping.aborted) {
    const job = await app.get(id);
    if (job === null) throw new EscapementError("not-found", `there is no job ${JSON.stringify(id)}`);
    const trail = await app.trail(job.id);
    for (const line of trail.slice(shown)) {
      const what = [line.text, line.error === null ? null : `${line.error.name}: ${line.error.message}`];
      write(
        flags,
        line,
        `${line.at.toISOString()} ${line.kind} ${what.filter((one) => one !== null).join(", ")}`,
      );
    }
    // A trail is bounded: where its oldest lines went, its length stays the same.
    shown = trail.length;
    const now = JSON.stringify(job.progress);
    if (now !== progress) write(flags, { progress: job.progress }, `progress ${now}`);
    if (job.state !== state) {
      const { reason } = job;
      write(flags, { state: job.state, reason }, [
        "now ",
        paintedState(job.state),
        reason === null ? "" : `: ${reason}`,
      ]);
    }
    [progress, state] = [now, job.state];
    if (isTerminal(job.state)) return;
    await pause(flags.every, stopping);
  }
  process.exitCode = 130;
}

function paintedState(
  state: Parameters<typeof paintState>[0],
): Exclude<ReturnType<typeof paintState>, number> {
  const painted = paintState(state);
  return typeof painted === "number" ? String(painted) : painted;
}

function write({ json }: AppFlags, value: unknown, line: Line): void {
  process.stdout.write(`${json === true ? printableJson(value) : render(line)}\n`);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
