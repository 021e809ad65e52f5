import { type Command, Option } from "commander";
import { addFigures, type HistoryFigures, type HistoryPoint, noFigures, stepMs } from "../../history.ts";
import { type AppFlags, appCommand, withOperations } from "../app.ts";
import { type Cell, type Line, printList, remark, table } from "../output.ts";
import { sparkline } from "../sparkline.ts";
import { instantOrAgo, short } from "../times.ts";

interface HistoryFlags extends AppFlags {
  readonly since?: Date;
  readonly until?: Date;
  readonly queue?: string;
  readonly name?: string;
  readonly by?: "queue" | "name";
}

const minuteMs = stepMs.minute;
const dayMs = 24 * stepMs.hour;
/** A table has at most so many rows of time. */
const mostRows = 24;
const rowMinutes = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440];

export function historyCommand(): Command {
  return appCommand("history", "what ended, by minute for a day and by hour for 30 days")
    .option("--since <time>", "from then on, such as 6h or 2026-11-15T03:00Z (default: 1h)", instantOrAgo)
    .option("--until <time>", "up to then (default: now)", instantOrAgo)
    .option("--queue <queue>", "of this queue")
    .option("--name <name>", "of this job")
    .addOption(new Option("--by <what>", "one row per queue or job").choices(["queue", "name"]))
    .action(async (flags: HistoryFlags) => {
      const { queue, name, by } = flags;
      const until = flags.until ?? new Date();
      const since = flags.since ?? new Date(until.getTime() - stepMs.hour);
      const step = Date.now() - since.getTime() <= dayMs ? "minute" : "hour";
      const { points, more } = await withOperations(flags, (operations) =>
        operations.history({
          ...{ step, since, until },
          ...(queue === undefined ? {} : { queue }),
          ...(name === undefined ? {} : { name }),
          ...(by === undefined ? {} : { by }),
        }),
      );
      printList(flags.json, points, () => historyLines(points, { since, until, by, step }));
      if (more) remark(flags.json, "truncated: ask for a shorter time");
    });
}

interface Asked {
  readonly since: Date;
  readonly until: Date;
  readonly by: HistoryFlags["by"];
  readonly step: keyof typeof stepMs;
}

function historyLines(points: readonly HistoryPoint[], { since, until, by, step }: Asked): Line[] {
  if (points.length === 0) return ["nothing ended in this time"];
  if (by !== undefined) return figureTable(by === "queue" ? "queue" : "job", groupRows(points, by));
  const rowMs = rowMsOf(until.getTime() - since.getTime(), stepMs[step]);
  const rows: HistoryFigures[] = [];
  const times: string[] = [];
  for (let atMs = Math.floor(since.getTime() / rowMs) * rowMs; atMs < until.getTime(); atMs += rowMs) {
    const within = points.filter(({ at }) => at.getTime() >= atMs && at.getTime() < atMs + rowMs);
    times.push(`${new Date(atMs).toISOString().slice(0, 16)}Z`);
    rows.push(within.reduce<HistoryFigures>(addFigures, noFigures));
  }
  return [
    ...figureTable(
      `from, for ${short(rowMs)} each`,
      rows.map((figures, row) => [times[row] ?? "", ...cellsOf(figures)]),
    ),
    `succeeded ${sparkline(
      rows.map(({ succeeded }) => succeeded),
      rows.length,
    )}`,
  ];
}

function groupRows(points: readonly HistoryPoint[], by: "queue" | "name"): (string | number)[][] {
  const groups = Object.entries(Object.groupBy(points, (point) => point[by] ?? ""));
  return groups.map(([group, ofGroup = []]) => [
    group,
    ...cellsOf(ofGroup.reduce<HistoryFigures>(addFigures, noFigures)),
  ]);
}

const headings = ["succeeded", "failed", "dead", "lost", "cancelled", "took", "latest start", "most due"];

function figureTable(first: string, rows: readonly (readonly Cell[])[]): Line[] {
  const importance = [first, "succeeded", "dead", "lost", "failed", "latest start", "took", "most due"];
  return table([first, ...headings], rows, { importance });
}

function cellsOf({
  succeeded,
  failed,
  crashed,
  dead,
  lost,
  cancelled,
  ...times
}: HistoryFigures): (string | number)[] {
  const { runs, runSumMs, late, lateMaxMs, dueMax } = times;
  const took = runs === 0 ? "" : millis(runSumMs / runs);
  // What a relay hands over starts without being timed here.
  const latest = late.some((many) => many > 0) ? millis(lateMaxMs) : "";
  return [succeeded, failed + crashed, dead, lost, cancelled, took, latest, dueMax === 0 ? "" : dueMax];
}

function millis(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)}ms` : short(ms);
}

function rowMsOf(spanMs: number, leastMs: number): number {
  const minutes = rowMinutes.find(
    (size) => size * minuteMs >= leastMs && spanMs / (size * minuteMs) <= mostRows,
  );
  return (minutes ?? 1_440) * minuteMs;
}
