import { Command, Option } from "commander";
import { type FilterWords, filterOf } from "../../operations/filter-words.ts";
import type { JobsPage } from "../../operations/find-jobs.ts";
import { shellWord } from "../../runtime/shell-word.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { withFilter } from "../filter-flags.ts";
import { jobTable } from "../job-lines.ts";
import { printList, remark } from "../output.ts";
import { wholeNumber } from "./cron.ts";
import { cancelCommand, deleteCommand, redriveCommand, runNowCommand } from "./jobs-change.ts";
import { editCommand } from "./jobs-edit.ts";
import { showCommand } from "./jobs-show.ts";
import { tailCommand } from "./jobs-tail.ts";

interface ListFlags extends AppFlags, FilterWords {
  readonly limit: number;
  readonly order: "newest" | "oldest";
  readonly lookAt: number;
  readonly cursor?: string;
}

export function jobsCommand(): Command {
  return new Command("jobs")
    .description("inspect and change jobs")
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(tailCommand())
    .addCommand(cancelCommand())
    .addCommand(redriveCommand())
    .addCommand(deleteCommand())
    .addCommand(editCommand())
    .addCommand(runNowCommand());
}

function listCommand(): Command {
  return withFilter(appCommand("ls", "list jobs that match, the newest first"))
    .option("--limit <n>", "how many at most", wholeNumber, 50)
    .addOption(
      new Option("--order <which>", "which come first").choices(["newest", "oldest"]).default("newest"),
    )
    .option("--look-at <n>", "how many jobs to search before printing what was found", wholeNumber, 10_000)
    .option("--cursor <where>", "continue where another page ended")
    .action(async (flags: ListFlags) => {
      const { limit, order, lookAt, cursor = null } = flags;
      const { page, now } = await withOperations(flags, async (operations, app) => ({
        page: await operations.jobs(filterOf(flags), { limit, order, lookAt, cursor }),
        now: (await app.health()).now,
      }));
      printList(flags.json, page.jobs, () =>
        page.jobs.length === 0 ? [nothingFound(flags, page)] : jobTable(page.jobs, now),
      );
      tellMore(flags, page);
    });
}

function nothingFound({ order }: ListFlags, { looked, cursor }: JobsPage): string {
  return cursor === null ? "no jobs" : `none among the ${looked} ${order}`;
}

/** A part is never passed off as the whole. A program reads the cursor from standard error. */
function tellMore(flags: ListFlags, { looked, cursor, jobs }: JobsPage): void {
  if (cursor === null) return;
  if (flags.json === true) {
    process.stderr.write(`${JSON.stringify({ looked, cursor })}\n`);
    return;
  }
  const what = jobs.length < flags.limit ? `looked at ${looked} jobs; ` : "";
  remark(false, `${what}there may be more: repeat the command with --cursor ${shellWord(cursor)}`);
}
