import type { NodeRecord, QueueChange, QueueConfig, RateLimit, SeenNode } from "../../store.ts";
import type { Space } from "./space.ts";

export function configureQueue(space: Space, change: QueueChange): QueueConfig {
  const old = space.queues.get(change.queue);
  const config = {
    queue: change.queue,
    paused: change.paused ?? old?.paused ?? false,
    concurrency: change.concurrency === undefined ? (old?.concurrency ?? null) : change.concurrency,
    rate: change.rate === undefined ? (old?.rate ?? null) : copyRate(change.rate),
  };
  space.queues.set(change.queue, config);
  space.notices.queueConfigured();
  space.notices.claimable(change.queue);
  return copyConfig(config);
}

export function queues(space: Space): QueueConfig[] {
  return [...space.queues.values()].toSorted((a, b) => compareText(a.queue, b.queue)).map(copyConfig);
}

export function putNode(space: Space, node: NodeRecord, now: number): void {
  const startedAt = space.nodes.get(node.id)?.startedAt ?? new Date(now);
  space.nodes.set(node.id, { ...copyNode(node), startedAt, seenAt: new Date(now) });
}

/** By id. */
export function nodes(space: Space, now: number): SeenNode[] {
  return [...space.nodes.values()]
    .toSorted((a, b) => compareText(a.id, b.id))
    .map((node) => ({
      ...copyNode(node),
      startedAt: new Date(node.startedAt),
      seenAt: new Date(node.seenAt),
      alive: now - node.seenAt.getTime() <= node.ttlMs,
    }));
}

export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function copyConfig(config: QueueConfig): QueueConfig {
  return { ...config, rate: copyRate(config.rate) };
}

function copyRate(rate: RateLimit | null): RateLimit | null {
  return rate === null ? null : { limit: rate.limit, perMs: rate.perMs };
}

function copyNode(node: NodeRecord): NodeRecord {
  return {
    id: node.id,
    host: node.host,
    pid: node.pid,
    version: node.version,
    roles: [...node.roles],
    queues: node.queues === null ? null : [...node.queues],
    names: [...node.names],
    concurrency: node.concurrency,
    active: node.active,
    ttlMs: node.ttlMs,
  };
}
