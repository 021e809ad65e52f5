import type { Command } from "commander";
import { defaultFailures, type FailureGroup, type Failures } from "../../operations/failures.ts";
import { type FilterWords, filterOf } from "../../operations/filter-words.ts";
import { type ManyFlags, withMany } from "../acting.ts";
import { type AppFlags, appCommand, here, withOperations } from "../app.ts";
import { redrive } from "../changes.ts";
import { withFilter } from "../filter-flags.ts";
import { type Line, printList, remark, table } from "../output.ts";
import { away } from "../times.ts";
import { wholeNumber } from "./cron.ts";
import { changeAll } from "./jobs-change.ts";

interface FailureFlags extends AppFlags, Omit<FilterWords, "state" | "fingerprint"> {
  readonly lookAt: number;
}

/** `dead` and `lost`: what went wrong, grouped, and the way to send a group back. */
export function failuresCommand(state: FailureGroup["state"]): Command {
  const what = state === "dead" ? "that used up their attempts" : "whose outcome is unknown";
  const command = withFilter(appCommand(state, `jobs ${what}, grouped by what went wrong`));
  return command
    .option(
      "--look-at <n>",
      "how many jobs to search, those that ended last first",
      wholeNumber,
      defaultFailures,
    )
    .action(async (flags: FailureFlags) => {
      const filter = { ...filterOf({ ...flags, state: [state] }) };
      const { failures, now } = await withOperations(flags, async (operations, app) => ({
        failures: await operations.failures(filter, flags.lookAt),
        now: (await app.health()).now,
      }));
      printList(flags.json, failures.groups, () => groupLines(failures, now, state));
      if (failures.isPartial) {
        remark(flags.json, `these are from the ${failures.looked} that ended last; see more with --look-at`);
        if (flags.json === true)
          process.stderr.write(`${JSON.stringify({ isPartial: true, looked: failures.looked })}\n`);
      }
      const [largest] = failures.groups;
      if (largest !== undefined)
        remark(
          flags.json,
          here(`redrive a group: escapement ${state} redrive ${largest.fingerprint}`, flags),
        );
    })
    .addCommand(redriveGroupCommand(state));
}

function redriveGroupCommand(state: FailureGroup["state"]): Command {
  return withMany(withFilter(appCommand("redrive", "redrive all jobs of a group")))
    .argument("<fingerprint>", "of the group")
    .action(async (fingerprint: string, flags: AppFlags & FilterWords & ManyFlags) => {
      const filter = { ...filterOf({ ...flags, state: [state] }), fingerprint };
      const matched = await withOperations(flags, (operations) =>
        changeAll(operations, redrive, filter, flags),
      );
      // Of a group that was named, and is not there.
      if (matched === 0) process.exitCode = 1;
    });
}

function groupLines({ groups }: Failures, now: Date, state: string): Line[] {
  if (groups.length === 0) return [`no jobs are ${state}`];
  return table(
    ["count", "job", "last", "fingerprint", "such as", "what went wrong"],
    groups.map((group) => [
      group.count,
      group.name,
      away(group.lastAt, now),
      group.fingerprint,
      group.sampleId,
      group.shape,
    ]),
    {
      whole: ["fingerprint", "such as"],
      // With the fingerprint, jobs ls finds such jobs.
      importance: ["fingerprint", "what went wrong", "count", "job", "such as", "last"],
    },
  );
}
