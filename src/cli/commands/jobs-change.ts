import type { Command } from "commander";
import type { Act } from "../../operations/act.ts";
import type { BulkProgress, BulkTask } from "../../operations/bulk-task.ts";
import { type FilterWords, filterOf, hasFilter } from "../../operations/filter-words.ts";
import type { JobsFilter } from "../../operations/find-jobs.ts";
import type { BulkOptions, Operations } from "../../operations/operations.ts";
import { actOf, confirmed, type ManyFlags, withMany } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { withFilter } from "../filter-flags.ts";
import { print, remark } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";
import { UsageError } from "../usage-error.ts";

export interface ChangeFlags extends AppFlags, FilterWords, ManyFlags {}

/** Something that is done to jobs by their ids, or to all that match. */
export interface Change {
  readonly verb: "cancel" | "redrive" | "delete";
  /** The outcomes in which it was done. */
  readonly done: readonly string[];
  readonly some: (operations: Operations, ids: readonly string[], act: Act) => Promise<Counts>;
  readonly all: (operations: Operations, filter: JobsFilter, act: Act, options: BulkOptions) => BulkTask;
}

type Counts = Readonly<Record<string, number | undefined>>;

const cancel: Change = {
  verb: "cancel",
  done: ["cancelled", "requested"],
  some: (operations, ids, act) => operations.cancel(ids, act),
  all: (operations, filter, act, options) => operations.cancelAll(filter, act, options),
};

export const redrive: Change = {
  verb: "redrive",
  done: ["redriven"],
  some: (operations, ids, act) => operations.redrive(ids, act),
  all: (operations, filter, act, options) => operations.redriveAll(filter, act, options),
};

const remove: Change = {
  verb: "delete",
  done: ["deleted"],
  some: (operations, ids, act) => operations.delete(ids, act),
  all: (operations, filter, act, options) => operations.deleteAll(filter, act, options),
};

export function cancelCommand(): Command {
  return changeCommand(cancel, "cancel jobs that have not ended; a running one is asked to stop");
}

export function redriveCommand(): Command {
  return changeCommand(redrive, "send dead and lost jobs back to waiting");
}

export function deleteCommand(): Command {
  return changeCommand(remove, "forget jobs that have ended, with their input, result and trail");
}

function changeCommand(change: Change, description: string): Command {
  return withMany(withFilter(appCommand(change.verb, description)))
    .argument("[ids...]", "which jobs, or say it by a filter")
    .action(async (ids: readonly string[], flags: ChangeFlags) => {
      if (ids.length > 0 === hasFilter(flags)) {
        throw new UsageError(
          `expected ids of jobs, or a filter such as --state dead --name email, ${ids.length > 0 ? "and not both" : "and got neither"}`,
        );
      }
      await withOperations(flags, (operations) =>
        ids.length > 0
          ? changeSome(operations, change, [...new Set(ids)], flags)
          : changeAll(operations, change, filterOf(flags), flags),
      );
    });
}

async function changeSome(
  operations: Operations,
  change: Change,
  ids: readonly string[],
  flags: ChangeFlags,
): Promise<void> {
  if (flags.dryRun === true) {
    const page = await operations.jobs({ ids }, { limit: ids.length, lookAt: ids.length });
    print(flags.json, { matched: page.jobs.length }, () => [
      `${jobs(page.jobs.length)} of ${ids.length} known`,
    ]);
    return;
  }
  if (ids.length > 1 && !(await confirmed(`This will ${change.verb} ${jobs(ids.length)}.`, flags))) {
    remark(flags.json, "nothing was changed");
    return;
  }
  const tally = await change.some(operations, ids, actOf(flags));
  print(flags.json, tally, () => [describeCounts(tally)]);
  const done = change.done.reduce((sum, outcome) => sum + (tally[outcome] ?? 0), 0);
  if (done < ids.length) process.exitCode = 1;
}

/** Counts first where a person has to decide, then acts with a bar. */
export async function changeAll(
  operations: Operations,
  change: Change,
  filter: JobsFilter,
  flags: AppFlags & ManyFlags,
): Promise<void> {
  const act = actOf(flags);
  let total: number | null = null;
  if (flags.dryRun === true || flags.yes !== true) {
    const counting = change.all(operations, filter, act, { dryRun: true });
    const { matched } = await follow(counting, "counting", null, flags);
    if (flags.dryRun === true) {
      print(flags.json, { matched }, () => [`${jobs(matched)} would be ${past[change.verb]}`]);
      return;
    }
    if (matched > 1 && !(await confirmed(`This will ${change.verb} ${jobs(matched)}.`, flags))) {
      remark(flags.json, "nothing was changed");
      return;
    }
    total = matched;
  }
  const task = change.all(operations, filter, act, {});
  const result = await follow(task, doing[change.verb], total, flags);
  print(flags.json, { action: change.verb, ...result }, () => describe(result));
  if (result.state === "stopped") process.exitCode = 130;
}

const past = { cancel: "cancelled", redrive: "redriven", delete: "deleted" } as const;
const doing = { cancel: "cancelling", redrive: "redriving", delete: "deleting" } as const;

/** Shows a task's progress until it has ended. Ctrl-C stops it after the page under way; once more ends the process. */
async function follow(
  task: BulkTask,
  what: string,
  total: number | null,
  { json }: AppFlags,
): Promise<BulkProgress> {
  const bar = new ProgressBar(json !== true);
  const stop = (): void => {
    task.stop();
    process.once("SIGINT", () => process.exit(130));
  };
  process.once("SIGINT", stop);
  try {
    for await (const { matched, looked } of task)
      bar.show(
        `${what}: ${jobs(matched)}${total === null ? `, ${looked} looked at` : ` of ${total}`}`,
        matched,
        total,
      );
    return await task.result();
  } finally {
    bar.end();
    process.removeListener("SIGINT", stop);
  }
}

function describe({ matched, outcomes, changed, state }: BulkProgress): string[] {
  if (matched === 0) return ["no job matches"];
  const others = changed === 0 ? "" : `, ${changed} no longer matched`;
  return [`${describeCounts(outcomes)}${others}${state === "stopped" ? "; stopped before the end" : ""}`];
}

function describeCounts(counts: Counts): string {
  const parts = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
  return parts.length === 0 ? "nothing was changed" : parts.join(", ");
}

function jobs(count: number): string {
  return count === 1 ? "1 job" : `${count} jobs`;
}
