import type { SeenNode } from "../store/nodes.ts";
import type { Cause, SilentNode } from "./cause.ts";

/** What decides which nodes may serve a job. */
export interface Served {
  readonly name: string;
  readonly queue: string;
  readonly relayed: boolean;
}

/** Living nodes that could take the job now. */
export function serversOf(job: Served, nodes: readonly SeenNode[]): SeenNode[] {
  return handlersOf(job, nodes).filter((node) => job.relayed || worksOn(node, job.queue));
}

/** Why no living node serves such a job; null when one does. */
export function whyUnserved(job: Served, nodes: readonly SeenNode[]): Cause | null {
  const living = nodes.filter(({ alive }) => alive);
  const handlers = handlersOf(job, nodes);
  const silent = silentServer(job, nodes);
  if (handlers.length === 0) {
    const { name } = job;
    if (!job.relayed) return { code: "no-handler", name, alive: living.length, silent };
    const relays = living.filter(({ roles }) => roles.includes("relay")).length;
    return { code: "no-relay", name, relays, silent };
  }
  if (serversOf(job, nodes).length > 0) return null;
  const { name, queue } = job;
  return { code: "queue-not-served", name, queue, nodes: handlers.map(({ id }) => id) };
}

function handlersOf(job: Served, nodes: readonly SeenNode[]): SeenNode[] {
  return nodes.filter((node) => node.alive && handles(node, job));
}

function handles({ roles, names }: SeenNode, { name, relayed }: Served): boolean {
  return names.includes(name) && roles.includes(relayed ? "relay" : "worker");
}

function worksOn({ queues }: SeenNode, queue: string): boolean {
  return queues === null || queues.includes(queue);
}

/** The one that fell silent last. */
function silentServer(job: Served, nodes: readonly SeenNode[]): SilentNode | null {
  const silent = nodes.filter((node) => !node.alive && handles(node, job));
  const [last] = silent.toSorted((a, b) => b.seenAt.getTime() - a.seenAt.getTime());
  return last === undefined ? null : { id: last.id, seenAt: last.seenAt };
}
