import type { AnyDefinition } from "../definition.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { CountRow, Depths, QueueDepth } from "../store/questions.ts";
import type { QueueConfig } from "../store/queues.ts";

/** A queue: what it has to do, and what holds it back. */
export interface QueueView extends QueueDepth, Omit<QueueConfig, "queue"> {
  /** How long its oldest due job has been due; null when nothing is due. */
  readonly oldestDueMs: number | null;
}

/** Queues that may have nothing to do: of jobs that have ended, of living nodes, and of definitions. */
export function namesOf(
  counts: readonly CountRow[],
  nodes: readonly SeenNode[],
  definitions: readonly AnyDefinition[],
): string[] {
  return [
    ...counts.flatMap(({ queue = [] }) => queue),
    ...nodes.flatMap(({ alive, queues }) => (alive ? (queues ?? []) : [])),
    ...definitions.map(({ queue }) => queue),
  ];
}

/** By name: those that have work or were configured, and the others named. */
export function viewsOf(
  { now, queues: depths }: Depths,
  configs: readonly QueueConfig[],
  others: readonly string[],
): QueueView[] {
  const names = new Set([...[...depths, ...configs].map(({ queue }) => queue), ...others]);
  return [...names].sort().map((queue) => {
    const none = { due: 0, later: 0, active: 0, blocked: 0, oldestDueAt: null, isExact: true };
    const depth = depths.find((one) => one.queue === queue) ?? { queue, ...none };
    const config = configs.find((one) => one.queue === queue);
    const { paused = false, concurrency = null, rate = null } = config ?? {};
    const oldestDueMs =
      depth.oldestDueAt === null ? null : Math.max(0, now.getTime() - depth.oldestDueAt.getTime());
    return { ...depth, paused, concurrency, rate, oldestDueMs };
  });
}
