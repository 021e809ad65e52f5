import { Command, InvalidArgumentError } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import type { Schedule } from "../../app/schedule.ts";
import { explainCron } from "../../cron/explain.ts";
import { nextFireTimes } from "../../cron/spec.ts";
import { EscapementError } from "../../errors.ts";
import { fireSpecOf } from "../../planner/schedule-spec.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print, table } from "../output.ts";
import { clockNote, wholeNumber } from "./cron.ts";

export function schedulesCommand(): Command {
  const command = new Command("schedules").description("look at schedules and change them");
  command.addCommand(
    appCommand("ls", "list them").action(async (flags: AppFlags) => {
      const schedules = await withApp(flags, "ask", (app) => app.schedules());
      print(flags.json, schedules, () => (schedules.length === 0 ? ["no schedules"] : listed(schedules)));
    }),
  );
  command.addCommand(
    appCommand("show", "one schedule and its latest occurrences").argument("<key>").action(show),
  );
  command.addCommand(
    appCommand("next", "the next times of one")
      .argument("<key>")
      .option("--count <n>", "how many", wholeNumber, 5)
      .action(next),
  );
  command.addCommand(
    appCommand("pause", "fire nothing until it is resumed")
      .argument("<key>")
      .action(change((app, key) => app.pauseSchedule(key))),
  );
  command.addCommand(
    appCommand("resume", "go on")
      .argument("<key>")
      .action(change((app, key) => app.resumeSchedule(key))),
  );
  command.addCommand(
    appCommand("trigger", "run its job once, now")
      .argument("<key>")
      .action(async (key: string, flags: AppFlags) => {
        const receipt = await withApp(flags, "ask", (app) => app.triggerNow(key));
        print(flags.json, receipt, () => [receipt.id]);
      }),
  );
  command.addCommand(
    appCommand("backfill", "plan what was skipped in a span of the past")
      .argument("<key>")
      .requiredOption("--from <time>", "inclusive", instant)
      .requiredOption("--to <time>", "inclusive", instant)
      .action(async (key: string, flags: AppFlags & { from: Date; to: Date }) => {
        const planned = await withApp(flags, "ask", (app) => app.backfill(key, flags.from, flags.to));
        print(flags.json, { planned }, () => [`${planned} planned`]);
      }),
  );
  return command;
}

function change(verb: (app: Escapement, key: string) => Promise<unknown>) {
  return async (key: string, flags: AppFlags): Promise<void> => {
    const result = await withApp(flags, "ask", (app) => verb(app, key));
    print(flags.json, result, () => ["done"]);
  };
}

async function find(app: Escapement, key: string): Promise<Schedule> {
  const schedule = await app.getSchedule(key);
  if (schedule === null)
    throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
  return schedule;
}

async function show(key: string, flags: AppFlags): Promise<void> {
  const { schedule, occurrences } = await withApp(flags, "ask", async (app) => ({
    schedule: await find(app, key),
    occurrences: (await app.occurrences(key)).slice(-20),
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
        )),
  ]);
}

async function next(key: string, flags: AppFlags & { count: number }): Promise<void> {
  const schedule = await withApp(flags, "ask", (app) => find(app, key));
  const times = nextFireTimes(fireSpecOf(schedule.spec), { count: flags.count });
  const zone = schedule.spec.timezone ?? "UTC";
  print(flags.json, times, () =>
    times.map((time) => `${time.toISOString()}  ${clockNote(time, zone) ?? ""}`.trimEnd()),
  );
}

function listed(schedules: readonly Schedule[]): string[] {
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
  );
}

function describeSpec({ spec, unreadable }: Schedule): string {
  if (unreadable !== undefined) return "";
  if (spec.cron !== undefined)
    return `${explainCron(spec.cron, spec.days === undefined ? {} : { days: spec.days })}${spec.timezone === undefined ? "" : ` (${spec.timezone})`}`;
  return spec.every === undefined ? `at ${spec.at?.toISOString()}` : `every ${spec.every}`;
}

function instant(text: string): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()))
    throw new InvalidArgumentError("expected a time such as 2026-11-15T03:00:00Z");
  return date;
}
