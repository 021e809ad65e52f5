import { Command } from "commander";
import type { Schedule } from "../../app/schedule.ts";
import { clockNote } from "../../cron/clock-note.ts";
import { explainCron } from "../../cron/explain.ts";
import { nextFireTimes } from "../../cron/spec.ts";
import { EscapementError } from "../../errors.ts";
import type { Act } from "../../operations/act.ts";
import type { Operations } from "../../operations/operations.ts";
import { fireSpecOf } from "../../planner/schedule-spec.ts";
import { type ActFlags, actOf, confirmed, type ManyFlags, withAct, withMany } from "../acting.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type Line, print, printList, remark, table } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";
import { instantOrAgo } from "../times.ts";
import { wholeNumber } from "./cron.ts";

interface KeyFlags extends AppFlags, ActFlags {}

interface BackfillFlags extends AppFlags, ManyFlags {
  readonly from: Date;
  readonly to: Date;
}

export function schedulesCommand(): Command {
  const command = new Command("schedules").description("inspect and change schedules");
  const withKey = (name: string, text: string): Command => appCommand(name, text).argument("<key>");
  const acting = (name: string, text: string): Command => withAct(withKey(name, text));
  command.addCommand(
    appCommand("ls", "list them").action(async (flags: AppFlags) => {
      const schedules = await withOperations(flags, (operations) => operations.schedules());
      printList(flags.json, schedules, () => (schedules.length === 0 ? ["no schedules"] : listed(schedules)));
    }),
  );
  command.addCommand(withKey("show", "one schedule and its latest occurrences").action(show));
  command.addCommand(
    withKey("next", "the next times of one").option("--count <n>", "how many", wholeNumber, 5).action(next),
  );
  command.addCommand(
    acting("pause", "pause it until it is resumed").action(
      change((operations, key, act) => operations.pauseSchedule(key, act)),
    ),
  );
  command.addCommand(
    acting("resume", "resume it").action(
      change((operations, key, act) => operations.resumeSchedule(key, act)),
    ),
  );
  command.addCommand(
    acting("trigger", "run its job once, now").action(async (key: string, flags: KeyFlags) => {
      const receipt = await withOperations(flags, (operations) => operations.trigger(key, actOf(flags)));
      print(flags.json, receipt, () => [receipt.id]);
    }),
  );
  command.addCommand(
    withMany(withKey("backfill", "plan what was skipped in a span of the past; more than one asks first"))
      .requiredOption("--from <time>", "inclusive", instantOrAgo)
      .requiredOption("--to <time>", "inclusive", instantOrAgo)
      .action((key: string, flags: BackfillFlags) =>
        withOperations(flags, (operations) => backfill(operations, key, flags)),
      ),
  );
  command.addCommand(acting("rm", "remove it; its jobs and its ledger stay").action(remove));
  return command;
}

async function backfill(operations: Operations, key: string, flags: BackfillFlags): Promise<void> {
  const { from, to } = flags;
  if (flags.dryRun === true || flags.yes !== true) {
    const { count } = await operations.previewBackfill(key, from, to);
    const jobs = count === 1 ? "1 job" : `${count} jobs`;
    if (flags.dryRun === true) {
      print(flags.json, { matched: count }, () => [`${jobs} would be planned`]);
      return;
    }
    if (count > 1 && !(await confirmed(`This will plan ${jobs}.`, flags))) {
      remark(flags.json, "nothing was changed");
      return;
    }
  }
  const bar = new ProgressBar(flags.json !== true);
  const onProgress = (done: number, total: number): void =>
    bar.show(`planning: ${done} of ${total} occurrences`, done, total);
  const planned = await operations
    .backfill(key, from, to, actOf(flags), { onProgress })
    .finally(() => bar.end());
  print(flags.json, { planned }, () => [`${planned} planned`]);
}

async function remove(key: string, flags: KeyFlags): Promise<void> {
  const removed = await withOperations(flags, (operations) => operations.removeSchedule(key, actOf(flags)));
  if (!removed) throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
  print(flags.json, { removed: key }, () => ["removed"]);
}

function change(verb: (operations: Operations, key: string, act: Act) => Promise<Schedule>) {
  return async (key: string, flags: KeyFlags): Promise<void> => {
    const result = await withOperations(flags, (operations) => verb(operations, key, actOf(flags)));
    print(flags.json, result, () => [
      result.paused ? "paused" : `next ${result.nextAt?.toISOString() ?? "never"}`,
    ]);
  };
}

async function find(operations: Operations, key: string): Promise<Schedule> {
  const schedule = await operations.schedule(key);
  if (schedule === null)
    throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
  return schedule;
}

async function show(key: string, flags: AppFlags): Promise<void> {
  const { schedule, occurrences } = await withOperations(flags, async (operations) => ({
    schedule: await find(operations, key),
    occurrences: (await operations.occurrences(key)).slice(-20),
  }));
  print(flags.json, { schedule, occurrences }, () => [
    ...listed([schedule]),
    "",
    ...(occurrences.length === 0
      ? ["nothing in the last day"]
      : table(
          ["time", "fate", "late", "reason"],
          occurrences.map((one) => [
            one.fireAt.toISOString(),
            one.count === 1 ? one.fate : `${one.fate} × ${one.count}`,
            one.lateMs === null ? "" : `${one.lateMs} ms`,
            one.reason ?? "",
          ]),
          { whole: ["time"], importance: ["time", "fate", "reason", "late"] },
        )),
  ]);
}

async function next(key: string, flags: AppFlags & { count: number }): Promise<void> {
  const schedule = await withOperations(flags, (operations) => find(operations, key));
  const times = nextFireTimes(fireSpecOf(schedule.spec), { count: flags.count });
  const zone = schedule.spec.timezone ?? "UTC";
  printList(flags.json, times, () =>
    times.map((time) => {
      const note = clockNote(time, zone);
      return `${time.toISOString()}${note === null ? "" : `  ← ${note}`}`;
    }),
  );
}

function listed(schedules: readonly Schedule[]): Line[] {
  return table(
    ["schedule", "job", "when", "next", "fired", ""],
    schedules.map((one) => [
      one.key,
      one.name,
      describeSpec(one),
      one.nextAt?.toISOString() ?? "never",
      one.fired,
      one.unreadable ?? (one.paused ? "paused" : ""),
    ]),
    { whole: ["schedule", "next"], importance: ["schedule", "next", "", "when", "job", "fired"] },
  );
}

function describeSpec({ spec, unreadable }: Schedule): string {
  if (unreadable !== undefined) return "";
  if (spec.cron !== undefined)
    return `${explainCron(spec.cron, spec.days === undefined ? {} : { days: spec.days })}${spec.timezone === undefined ? "" : ` (${spec.timezone})`}`;
  return spec.every === undefined ? `at ${spec.at?.toISOString()}` : `every ${spec.every}`;
}
