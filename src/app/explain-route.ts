import type { AnyDefinition } from "../definition.ts";
import { slotOf } from "../id.ts";
import type { Job } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { PartitionRecord, PartitionTable, QueueConfig, SeenNode } from "../store.ts";

/** What an explanation of a job that is published asks. */
export interface RouteFacts {
  readonly definitions: readonly AnyDefinition[];
  partitions(): Promise<PartitionTable>;
  queues(): Promise<QueueConfig[]>;
  nodes(): Promise<SeenNode[]>;
}

/** Where a job is published to, who would do it, and how far that has come; a line each. */
export async function explainRoute(app: RouteFacts, job: Job): Promise<string[]> {
  const lines = [`route: ${routeOf(app.definitions, job.name)}`];
  if (job.rollbacks > 0)
    lines.push(`rolled back ${job.rollbacks === 1 ? "once" : `${job.rollbacks} times`} so far`);
  if (isTerminal(job.state)) return lines;
  const [table, queues, nodes] = await Promise.all([app.partitions(), app.queues(), app.nodes()]);
  const slot = slotOf(job.id);
  const partition = table.partitions.find(({ firstSlot, endSlot }) => slot >= firstSlot && slot < endSlot);
  if (partition === undefined) return [...lines, "partition: none yet, no relay has ever run here"];
  lines.push(`partition ${placeOf(partition, table)}: ${holderOf(partition, nodes)}`);
  if (job.state === "active") return [...lines, namedBy(job, partition)];
  const owner = nodes.find(({ id }) => id === partition.owner);
  const isPaused = queues.some(({ queue, paused }) => queue === job.queue && paused);
  if (isPaused) lines.push(`not named: queue ${job.queue} is paused`);
  else if (owner !== undefined && !owner.names.includes(job.name))
    lines.push(`not named: ${owner.id} has no route for ${job.name}`);
  else lines.push("not named");
  return lines;
}

function routeOf(definitions: readonly AnyDefinition[], name: string): string {
  const route = definitions.find((definition) => definition.name === name)?.route ?? null;
  return route === null
    ? "not known to this process, which has no definition of the job with one"
    : `${route.transport.kind}, ${route.destination}`;
}

function placeOf({ partition, epoch }: PartitionRecord, { partitions, wanted }: PartitionTable): string {
  const more = wanted > partitions.length ? `, to be cut into ${wanted} when all are given back` : "";
  return `${partition} of ${partitions.length} (epoch ${epoch}${more})`;
}

function holderOf({ owner }: PartitionRecord, nodes: readonly SeenNode[]): string {
  if (owner !== null) return `held by ${owner}`;
  const relays = nodes.filter(({ alive, roles }) => alive && roles.includes("relay")).length;
  if (relays === 0) return "held by nobody, and no relay is alive";
  return `held by nobody; ${relays === 1 ? "a relay is" : `${relays} relays are`} alive to take it`;
}

function namedBy(job: Job, { owner }: PartitionRecord): string {
  if (owner === job.claimer) return `named by ${job.claimer}: on its way, the broker's word is awaited`;
  const next = job.delivery === "at-most-once" ? "gives it up as lost" : "publishes it again";
  return `named by ${job.claimer}, which does not hold the partition any more: its next holder ${next}`;
}
