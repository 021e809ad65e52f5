import type { RateLimit } from "../../store/claims.ts";
import type { NodeRecord, SeenNode } from "../../store/nodes.ts";
import type { QueueChange, QueueConfig } from "../../store/queues.ts";
import type { Session } from "./session.ts";

export function configureQueue({ data }: Session, change: QueueChange): QueueConfig {
  const old = data.queues.get(change.queue);
  const config = {
    queue: change.queue,
    paused: change.paused ?? old?.paused ?? false,
    concurrency: change.concurrency === undefined ? (old?.concurrency ?? null) : change.concurrency,
    rate: change.rate === undefined ? (old?.rate ?? null) : copyRate(change.rate),
  };
  data.queues.set(change.queue, config);
  data.notices.draft.queueConfigured();
  data.notices.draft.claimable(change.queue);
  return copyConfig(config);
}

export function queues({ data }: Session): QueueConfig[] {
  return [...data.queues.values()].toSorted((a, b) => compareText(a.queue, b.queue)).map(copyConfig);
}

export function putNode({ data, now }: Session, node: NodeRecord): void {
  const startedAt = data.nodes.get(node.id)?.startedAt ?? new Date(now);
  data.nodes.set(node.id, { ...copyNode(node), startedAt, seenAt: new Date(now) });
}

/** By id. */
export function removeNode({ data }: Session, { id }: { readonly id: string }): void {
  data.nodes.delete(id);
}

export function nodes({ data, now }: Session): SeenNode[] {
  return [...data.nodes.values()]
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
    ...(node.running === undefined ? {} : { running: structuredClone(node.running) }),
    ...(node.destinations === undefined ? {} : { destinations: structuredClone(node.destinations) }),
    ...(node.lags === undefined ? {} : { lags: structuredClone(node.lags) }),
  };
}
