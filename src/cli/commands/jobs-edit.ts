import { type Command, InvalidArgumentError } from "commander";
import type { JobChanges } from "../../client/client.ts";
import { EscapementError } from "../../errors.ts";
import type { UpdateResult } from "../../store/jobs.ts";
import { type ActFlags, actOf, withAct } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { print } from "../output.ts";
import { readInput } from "../read-input.ts";
import { duration, instant } from "../times.ts";
import { UsageError } from "../usage-error.ts";

interface EditFlags extends AppFlags, ActFlags {
  readonly input?: string;
  readonly priority?: number;
  readonly delay?: number;
  readonly at?: Date;
}

export function editCommand(): Command {
  return withAct(appCommand("edit", "change a job that has not started"))
    .argument("<id>", "the id of a job")
    .option("--input <json>", "its input: JSON, @file, or - for standard input; needs the job's definition")
    .option("--priority <n>", "higher runs first", wholeInteger)
    .option("--delay <duration>", "due this long from now", duration)
    .option("--at <time>", "due then", instant)
    .action(async (id: string, flags: EditFlags) => {
      const { priority, delay, at } = flags;
      const changes: JobChanges = {
        ...(flags.input === undefined ? {} : { input: await readInput(flags.input) }),
        ...(priority === undefined ? {} : { priority }),
        ...(delay === undefined ? {} : { delay }),
        ...(at === undefined ? {} : { runAt: at }),
      };
      if (Object.keys(changes).length === 0)
        throw new UsageError("expected something to change: --input, --priority, --delay or --at");
      const result = await withOperations(flags, (operations) => operations.edit(id, changes, actOf(flags)));
      if (result.outcome === "unknown")
        throw new EscapementError("not-found", `there is no job ${JSON.stringify(id)}`);
      print(flags.json, result, () => [sayUpdated(id, result)]);
      if (result.outcome !== "updated") process.exitCode = 1;
    });
}

function sayUpdated(id: string, { outcome, state }: UpdateResult): string {
  return outcome === "updated" ? `${id}: changed` : `${id}: it is ${state}, and can no longer be changed`;
}

export function wholeInteger(text: string): number {
  if (!/^-?\d+$/.test(text)) throw new InvalidArgumentError("expected a whole number");
  return Number(text);
}
