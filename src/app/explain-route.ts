import type { AnyDefinition } from "../definition.ts";
import { slotOf } from "../id.ts";
import type { Job } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { PartitionRecord, PartitionTable } from "../store/partitions.ts";

/** What an explanation of a job that is published asks. */
export interface RouteFacts {
  readonly definitions: readonly AnyDefinition[];
  partitions(): Promise<PartitionTable>;
  nodes(): Promise<SeenNode[]>;
}

/** Where a job is published to, who would do it, and how far that has come; a line each. */
export async function explainRoute(app: RouteFacts, job: Job): Promise<string[]> {
  const lines = [`route: ${routeOf(app.definitions, job.name)}`];
  if (job.rollbacks > 0)
    lines.push(`rolled back ${job.rollbacks === 1 ? "once" : `${job.rollbacks} times`} so far`);
  if (isTerminal(job.state)) return lines;
  const [table, nodes] = await Promise.all([app.partitions(), app.nodes()]);
  const slot = slotOf(job.id);
  const partition = table.partitions.find(({ firstSlot, endSlot }) => slot >= firstSlot && slot < endSlot);
  if (partition === undefined) return [...lines, "partition: none yet, no relay has run here"];
  lines.push(`partition ${placeOf(partition, table)}: ${holderOf(partition, nodes)}`);
  return lines;
}

function routeOf(definitions: readonly AnyDefinition[], name: string): string {
  const route = definitions.find((definition) => definition.name === name)?.route ?? null;
  return route === null
    ? "not known to this process, which has no definition of the job with one"
    : `${route.transport.kind}, ${route.destination}`;
}

function placeOf({ partition, epoch }: PartitionRecord, { partitions, wanted }: PartitionTable): string {
  const more = wanted > partitions.length ? `, to be divided into ${wanted} when all are given back` : "";
  return `${partition} of ${partitions.length} (epoch ${epoch}${more})`;
}

function holderOf({ owner }: PartitionRecord, nodes: readonly SeenNode[]): string {
  if (owner !== null) return `held by ${owner}`;
  const relays = nodes.filter(({ alive, roles }) => alive && roles.includes("relay")).length;
  if (relays === 0) return "held by no relay, and none is alive";
  return `held by no relay; ${relays === 1 ? "a relay is" : `${relays} relays are`} alive to take it`;
}
