import { Command, InvalidArgumentError } from "commander";
import { clockNote } from "../../cron/clock-note.ts";
import { explainCron } from "../../cron/explain.ts";
import { type FireSpec, nextFireTimes } from "../../cron/spec.ts";
import { checkOneOf } from "../../options.ts";
import { print, printList } from "../output.ts";
import { instant } from "../times.ts";

interface NextFlags {
  readonly tz: string;
  readonly count: number;
  readonly after?: Date;
  readonly days?: "or" | "and";
  readonly gap?: "run-after" | "skip";
  readonly repeat?: "first" | "both";
  readonly json?: boolean;
}

export function cronCommand(): Command {
  const command = new Command("cron").description("work with cron expressions");
  command
    .command("next <expression>")
    .description("show the next times, and the days on which the clocks change")
    .option("--tz <zone>", "the time zone", "UTC")
    .option("--count <n>", "how many", wholeNumber, 5)
    .option("--after <time>", "after this time (default: now)", instant)
    .option("--days <rule>", "how day of month and day of week combine: or, and")
    .option("--gap <rule>", "a time that the clocks skip: run-after, skip")
    .option("--repeat <rule>", "a time that the clocks show twice: first, both")
    .option("--json", "answer in JSON")
    .action(showNext);
  command
    .command("explain <expression>")
    .description("explain an expression in plain English")
    .option("--days <rule>", "how day of month and day of week combine: or, and")
    .option("--json", "answer in JSON")
    .action((expression: string, { json, days = "or" }: { json?: boolean; days?: string }) => {
      const rule = { days: checkOneOf(days, ["or", "and"], "--days") };
      const text = explainCron(expression, rule);
      const fires = nextFireTimes({ cron: expression, ...rule }, { count: 1 }).length > 0;
      print(json, { expression, text, fires }, () => (fires ? [text] : [text, "it never fires"]));
    });
  return command;
}

function showNext(expression: string, flags: NextFlags): void {
  const { tz, count, after, days, gap, repeat } = flags;
  const spec: FireSpec = {
    cron: expression,
    timezone: tz,
    ...(days === undefined ? {} : { days }),
    ...(gap === undefined ? {} : { gap }),
    ...(repeat === undefined ? {} : { repeat }),
  };
  const times = nextFireTimes(spec, { count, ...(after === undefined ? {} : { after }) });
  const rows = times.map((time) => ({ time, local: localTime(time, tz), note: clockNote(time, tz) }));
  printList(flags.json, rows, () =>
    rows.length === 0
      ? ["it never fires"]
      : rows.map(
          ({ time, local, note }) => `${local}  ${time.toISOString()}${note === null ? "" : `  ← ${note}`}`,
        ),
  );
}

function localTime(time: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone, dateStyle: "medium", timeStyle: "long" });
  return format.format(time);
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 10_000) {
    throw new InvalidArgumentError("expected a whole number from 1 to 10000");
  }
  return value;
}
