import type { Command } from "commander";
import type { Escapement } from "../../app/escapement.ts";
import { jobStates } from "../../job.ts";
import type { CountRow, QueueConfig, SeenNode } from "../../store.ts";
import { type AppFlags, appCommand, withApp } from "../app.ts";
import { print, table } from "../output.ts";

interface Status {
  readonly counts: readonly CountRow[];
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
  const [counts, queues, nodes] = await Promise.all([
    app.countBy(["queue", "name", "state"]),
    app.queues(),
    app.nodes(),
  ]);
  return { counts, queues, nodes };
}

function describeStatus({ counts, queues, nodes }: Status): string[] {
  const states = jobStates.filter((state) => counts.some((row) => row.state === state));
  const kinds = [...new Set(counts.map(({ queue, name }) => JSON.stringify([queue, name])))].sort();
  const rows = kinds.map((kind) => {
    const [queue, name]: [string, string] = JSON.parse(kind);
    const cells = states.map(
      (state) =>
        counts.find((row) => row.queue === queue && row.name === name && row.state === state)?.count ?? 0,
    );
    return [queue, name, ...cells];
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
    ...(rows.length === 0 ? ["no jobs"] : table(["queue", "job", ...states], rows)),
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
