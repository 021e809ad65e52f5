import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { jobStates } from "../../job.ts";
import { Operations, type Overview } from "../../operations/operations.ts";
import type { CountRow } from "../../store/questions.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { type Line, print, table } from "../output.ts";
import { duration } from "../times.ts";
import { UsageError } from "../usage-error.ts";
import { nodeTable } from "./nodes.ts";
import { queueTable } from "./queues.ts";
import { failureLines } from "./status-screen.ts";
import { isScreen, showTrouble, watchStatus } from "./status-watch.ts";

export interface StatusFlags extends AppFlags {
  readonly watch?: boolean;
  readonly every: number;
}

export interface Status extends Overview {
  /** Of the waiting, those that are due; the others are due later. */
  readonly due: readonly CountRow[];
}

export function statusCommand(): Command {
  return appCommand("status", "jobs by state, queues, failures, and living nodes")
    .option("--watch", "a live screen; q or Ctrl-C ends it")
    .option("--every <duration>", "how often it refreshes, at most", duration, 1_000)
    .action(async (flags: StatusFlags) => {
      if (flags.watch === true) return await watch(flags);
      const status = await withApp(flags, "ask", readStatus);
      print(flags.json, status, () => describeStatus(status));
    });
}

async function watch(flags: StatusFlags): Promise<void> {
  if (!isScreen(flags) && flags.json !== true)
    throw new UsageError(
      "--watch is a screen on a terminal; elsewhere use status, or --watch --json for a line at each look",
    );
  const run = (app: Escapement): Promise<void> =>
    watchStatus(new Operations(app), app.settings.namespace, flags);
  if (isScreen(flags)) await withApp(flags, "ask", run, {}, showTrouble);
  else await withApp(flags, "ask", run);
}

async function readStatus(app: Escapement): Promise<Status> {
  const overview = await new Operations(app).overview();
  const runBefore = new Date(overview.now.getTime() + 1);
  const due = await app.countBy(["queue", "name"], { states: ["waiting"], runBefore });
  return { ...overview, due };
}

/** Waiting is two columns, since what is due and waits may be trouble, and what is due later is not. */
function columnsOf({ counts, due }: Status): { heading: string; count: (kind: Kind) => number }[] {
  const countIn = (rows: readonly CountRow[], { queue, name }: Kind): number =>
    rows.find((row) => row.queue === queue && row.name === name)?.count ?? 0;
  const states = jobStates.filter((state) => counts.some((row) => row.state === state));
  return states.flatMap((state) => {
    const rows = counts.filter((row) => row.state === state);
    if (state !== "waiting") return { heading: state, count: (kind) => countIn(rows, kind) };
    return [
      { heading: "due", count: (kind) => countIn(due, kind) },
      { heading: "later", count: (kind) => Math.max(0, countIn(rows, kind) - countIn(due, kind)) },
    ];
  });
}

interface Kind {
  readonly queue: string;
  readonly name: string;
}

const importance = ["queue", "job", "due", "dead", "lost", "active", "later", "blocked"];

function describeStatus(status: Status): Line[] {
  const { counts, queues, nodes, failures, now } = status;
  const columns = columnsOf(status);
  const kinds = [...new Set(counts.map(({ queue, name }) => JSON.stringify([queue, name])))].sort();
  const rows = kinds.map((kind) => {
    const [queue, name]: [string, string] = JSON.parse(kind);
    return [queue, name, ...columns.map(({ count }) => count({ queue, name }))];
  });
  return [
    ...(rows.length === 0
      ? ["no jobs"]
      : table(["queue", "job", ...columns.map(({ heading }) => heading)], rows, { importance })),
    ...(queues.length === 0 ? [] : ["", ...queueTable(queues)]),
    ...(failures.groups.length === 0 ? [] : ["", ...failureLines(failures, now, 5)]),
    "",
    ...(nodes.length === 0 ? ["no nodes"] : nodeTable(nodes, now)),
  ];
}
