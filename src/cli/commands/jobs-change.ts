import type { Command } from "commander";
import type { BulkProgress, BulkTask } from "../../operations/bulk-task.ts";
import { type FilterWords, filterOf, hasFilter } from "../../operations/filter-words.ts";
import type { JobsFilter } from "../../operations/find-jobs.ts";
import type { Operations } from "../../operations/operations.ts";
import { shellWord } from "../../runtime/shell-word.ts";
import { actOf, confirmed, type ManyFlags, withMany } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type BulkChange, type Change, type Counts, cancel, redrive, remove, runNow } from "../changes.ts";
import { withFilter } from "../filter-flags.ts";
import { print, remark } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";
import { onStopSignal } from "../stop-on-signal.ts";
import { UsageError } from "../usage-error.ts";

export interface ChangeFlags extends AppFlags, FilterWords, ManyFlags {}

export function cancelCommand(): Command {
  return changeCommand(cancel, "cancel jobs that have not ended; a running one is asked to stop");
}

export function redriveCommand(): Command {
  return changeCommand(redrive, "send dead and lost jobs back to waiting");
}

export function deleteCommand(): Command {
  return changeCommand(remove, "forget jobs that have ended, with their input, result and trail");
}

export function runNowCommand(): Command {
  return changeCommand(runNow, "make waiting jobs due now");
}

function changeCommand(change: Change, description: string): Command {
  return withMany(withFilter(appCommand(change.action, description)))
    .argument("[ids...]", "which jobs; or use a filter")
    .action(async (ids: readonly string[], flags: ChangeFlags) => {
      if (ids.length > 0 === hasFilter(flags)) {
        throw new UsageError(
          `expected ids of jobs, or a filter such as --state dead --name email, ${ids.length > 0 ? "and not both" : "and got neither"}`,
        );
      }
      await withOperations(flags, async (operations) => {
        if (ids.length > 0) await changeSome(operations, change, [...new Set(ids)], flags);
        else await changeAll(operations, change, filterOf(flags), flags);
      });
    });
}

async function changeSome(
  operations: Operations,
  change: Change,
  ids: readonly string[],
  flags: ChangeFlags,
): Promise<void> {
  if (flags.dryRun === true) {
    await changeAll(operations, change, { ids }, flags);
    return;
  }
  if (ids.length > 1 && !(await confirmed(`This will ${change.will(jobs(ids.length))}.`, flags))) {
    remark(flags.json, "nothing was changed");
    return;
  }
  const tally = await change.some(operations, ids, actOf(flags));
  print(flags.json, tally, () => [describeCounts(change, tally)]);
  const done = change.done.reduce((sum, outcome) => sum + (tally[outcome] ?? 0), 0);
  if (done === ids.length) return;
  process.exitCode = 1;
  if ((tally["unknown"] ?? 0) > 0 && ids.length > 1) {
    const { jobs: known } = await operations.jobs({ ids }, { limit: ids.length });
    const missing = ids.filter((id) => known.every((job) => job.id !== id));
    remark(flags.json, `not found: ${missing.map(shellWord).join(" ")}`);
  }
}

/** Counts first where a person has to decide, then acts with a bar. Returns how many matched. */
export async function changeAll(
  operations: Operations,
  change: BulkChange,
  filter: JobsFilter,
  flags: AppFlags & ManyFlags,
): Promise<number> {
  const act = actOf(flags);
  let total: number | null = null;
  if (flags.dryRun === true || flags.yes !== true) {
    const counting = change.all(operations, filter, act, { dryRun: true });
    const counted = await follow(counting, "counting", null, flags);
    const { matched } = counted.progress;
    // Part of a count decides nothing: neither whether to ask, nor what to say.
    if (counted.isInterrupted) {
      print(flags.json, { action: change.action, ...counted.progress, state: "stopped" }, () => [
        "stopped while counting; nothing was changed",
      ]);
      process.exitCode = 130;
      return matched;
    }
    const none = matched === 0 ? await whyNone(operations, change, filter) : null;
    if (flags.dryRun === true) {
      print(flags.json, { matched }, () => [none ?? `${jobs(matched)} would be ${change.past}`]);
      return matched;
    }
    if (none !== null) {
      print(flags.json, { action: change.action, ...counted.progress }, () => [none]);
      return matched;
    }
    if (matched > 1 && !(await confirmed(`This will ${change.will(jobs(matched))}.`, flags))) {
      remark(flags.json, "nothing was changed");
      return matched;
    }
    total = matched;
  }
  const task = change.all(operations, filter, act, {});
  const { progress } = await follow(task, change.doing, total, flags);
  const none = progress.matched === 0 ? await whyNone(operations, change, filter) : null;
  print(flags.json, { action: change.action, ...progress }, () => [none ?? describe(change, progress)]);
  if (progress.state === "stopped") process.exitCode = 130;
  return progress.matched;
}

interface Followed {
  readonly progress: BulkProgress;
  /** Ctrl-C was pressed, even if only on the last page. */
  readonly isInterrupted: boolean;
}

/** Shows a task's progress until it has ended. Ctrl-C stops it after the current page; pressed again, it ends the process. */
async function follow(
  task: BulkTask,
  what: string,
  total: number | null,
  { json }: AppFlags,
): Promise<Followed> {
  const bar = new ProgressBar(json !== true);
  let isInterrupted = false;
  const listenNoMore = onStopSignal(() => {
    isInterrupted = true;
    task.stop();
  });
  try {
    for await (const { matched, looked } of task)
      bar.show(
        `${what}: ${jobs(matched)}${total === null ? `, ${looked} looked at` : ` of ${total}`}`,
        matched,
        total,
      );
    return { progress: await task.result(), isInterrupted };
  } finally {
    bar.end();
    listenNoMore();
  }
}

/** The filter may fit jobs to which this cannot be done, so that nothing matches is not the whole answer. */
async function whyNone(operations: Operations, change: BulkChange, filter: JobsFilter): Promise<string> {
  const { states: _, names: __, queues: ___, fingerprint, ...others } = filter;
  if (fingerprint !== undefined) return `there is no such group of jobs: ${fingerprint}`;
  // By these alone jobs are counted without looking at any.
  if (Object.keys(others).length > 0) {
    const { jobs: some } = await operations.jobs(filter, { limit: 1 });
    return some.length === 0 ? "no job matches" : `none of the jobs that match can be ${change.past}`;
  }
  const found = (await operations.counts(["state"], filter)).filter(({ count }) => count > 0);
  const sum = found.reduce((total, { count }) => total + count, 0);
  if (sum === 0) return "no job matches";
  const states = found.map(({ state = "" }) => state).toSorted();
  return `${sum} match, none can be ${change.past} (${states.join(", ")})`;
}

function describe(change: BulkChange, { outcomes, changed, state }: BulkProgress): string {
  const others = changed === 0 ? "" : `, ${changed} no longer matched`;
  const rest = state === "stopped" ? "; stopped before the end" : "";
  return `${describeCounts(change, outcomes)}${others}${rest}`;
}

function describeCounts({ outcomes }: BulkChange, counts: Counts): string {
  const parts = Object.entries(counts).map(([outcome, count]) => `${count} ${outcomes[outcome] ?? outcome}`);
  return parts.length === 0 ? "nothing was changed" : parts.join(", ");
}

function jobs(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}
