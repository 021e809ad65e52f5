import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { jobStates } from "../../job.ts";
import type { CountRow, QueueConfig, SeenNode } from "../../store.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print, table } from "../output.ts";

interface Status {
  readonly counts: readonly CountRow[];
  /** Of the waiting, those that are due; the others are due later. */
  readonly due: readonly CountRow[];
  readonly queues: readonly QueueConfig[];
  readonly nodes: readonly SeenNode[];
}

export function statusCommand(): Command {
  return appCommand("status", "show how many jobs are in which state, the queues, and who is alive").action(
    async (flags: AppFlags) => {
      const status = await withApp(flags, "ask", readStatus);
      print(flags.json, status, () => describeStatus(status));
    },
  );
}

async function readStatus(app: Escapement): Promise<Status> {
  const { now } = await app.health();
  const runBefore = new Date(now.getTime() + 1);
  const [counts, due, queues, nodes] = await Promise.all([
    app.countBy(["queue", "name", "state"]),
    app.countBy(["queue", "name"], { states: ["waiting"], runBefore }),
    app.queues(),
    app.nodes(),
  ]);
  return { counts, due, queues, nodes };
}

/** Waiting is two columns, since what is due and waits may be trouble, and what is due later is none. */
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

function describeStatus(status: Status): string[] {
  const { counts, queues, nodes } = status;
  const columns = columnsOf(status);
  const kinds = [...new Set(counts.map(({ queue, name }) => JSON.stringify([queue, name])))].sort();
  const rows = kinds.map((kind) => {
    const [queue, name]: [string, string] = JSON.parse(kind);
    return [queue, name, ...columns.map(({ count }) => count({ queue, name }))];
  });
  const limits = queues.map(({ queue, paused, concurrency, rate }) => [
    queue,
    paused ? "paused" : "running",
    concurrency === null ? "" : `at most ${concurrency} at once`,
    rate === null ? "" : `at most ${rate.limit} per ${rate.perMs} ms`,
  ]);
  const alive = nodes.map((node) => [
    node.id,
    node.alive ? "alive" : "silent",
    node.roles.join("+"),
    busy(node),
    node.names.join(", "),
  ]);
  return [
    ...(rows.length === 0
      ? ["no jobs"]
      : table(["queue", "job", ...columns.map(({ heading }) => heading)], rows)),
    ...(limits.length === 0 ? [] : ["", ...table(["queue", "", "", ""], limits)]),
    "",
    ...(alive.length === 0 ? ["no nodes"] : table(["node", "", "roles", "busy", "jobs"], alive)),
  ];
}

/** What a relay has in flight takes no slots, and a node tells of one sum: where there is a relay it cannot be measured by them. */
function busy({ roles, active, concurrency }: SeenNode): string {
  if (roles.includes("relay")) return `${active} under way`;
  return roles.includes("worker") ? `${active} of ${concurrency} slots` : "";
}
