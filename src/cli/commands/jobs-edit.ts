import { type Command, InvalidArgumentError } from "commander";
import type { JobChanges } from "../../client/client.ts";
import { EscapementError } from "../../errors.ts";
import { type FilterWords, filterOf, hasFilter } from "../../operations/filter-words.ts";
import type { UpdateResult } from "../../store/jobs.ts";
import { actOf, type ManyFlags, withMany } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { prioritize } from "../changes.ts";
import { withFilter } from "../filter-flags.ts";
import { print } from "../output.ts";
import { readInput } from "../read-input.ts";
import { duration, instant } from "../times.ts";
import { UsageError } from "../usage-error.ts";
import { changeAll } from "./jobs-change.ts";

interface EditFlags extends AppFlags, FilterWords, ManyFlags {
  readonly input?: string;
  readonly priority?: number;
  readonly delay?: number;
  readonly at?: Date;
}

export function editCommand(): Command {
  return withMany(
    withFilter(appCommand("edit", "change a job that has not started, or the priority of many")),
  )
    .argument("[id]", "the id of a job; or use a filter with --priority")
    .option("--input <json>", "its input: JSON, @file, or - for standard input; needs the job's definition")
    .option("--priority <n>", "higher runs first", wholeInteger)
    .option("--delay <duration>", "due this long from now", duration)
    .option("--at <time>", "due then", instant)
    .action(async (id: string | undefined, flags: EditFlags) => {
      const { input, priority, delay, at } = flags;
      const given = { input, priority, delay, at };
      if (Object.values(given).every((value) => value === undefined))
        throw new UsageError("expected something to change: --input, --priority, --delay or --at");
      if ((id !== undefined) === hasFilter(flags))
        throw new UsageError(
          `expected the id of a job, or a filter such as --name email, ${id === undefined ? "and got neither" : "and not both"}`,
        );
      if (id === undefined) await editAll(flags);
      else await editOne(id, flags);
    });
}

async function editOne(id: string, flags: EditFlags): Promise<void> {
  const { input, priority, delay, at } = flags;
  const changes: JobChanges = {
    ...(input === undefined ? {} : { input: await readInput(input) }),
    ...(priority === undefined ? {} : { priority }),
    ...(delay === undefined ? {} : { delay }),
    ...(at === undefined ? {} : { runAt: at }),
  };
  await withOperations(flags, async (operations) => {
    // Whatever is edited, it is the same jobs that can be.
    if (flags.dryRun === true) {
      await changeAll(operations, prioritize(0), { ids: [id] }, flags);
      return;
    }
    const result = await operations.edit(id, changes, actOf(flags));
    if (result.outcome === "unknown")
      throw new EscapementError("not-found", `there is no job ${JSON.stringify(id)}`);
    print(flags.json, result, () => [sayUpdated(id, result)]);
    if (result.outcome !== "updated") process.exitCode = 1;
  });
}

async function editAll(flags: EditFlags): Promise<void> {
  const { priority, input, delay, at } = flags;
  if (priority === undefined || input !== undefined || delay !== undefined || at !== undefined)
    throw new UsageError("expected --priority and nothing else with a filter: the rest is for one job");
  await withOperations(flags, (operations) =>
    changeAll(operations, prioritize(priority), filterOf(flags), flags),
  );
}

function sayUpdated(id: string, { outcome, state }: UpdateResult): string {
  return outcome === "updated" ? `${id}: changed` : `${id}: it is ${state}, and can no longer be changed`;
}

export function wholeInteger(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError("expected a whole number");
  return Number(text);
}
