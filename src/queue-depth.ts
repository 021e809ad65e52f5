import type { QueueDepth } from "./store.ts";

/** Jobs of one queue that are in one state. */
export interface DepthPart {
  readonly queue: string;
  readonly state: "waiting" | "active" | "blocked";
  readonly jobs: number;
  /** Of the waiting ones, how many are due, and the runAt of the first, due or not. */
  readonly due: number;
  readonly firstAt: number | null;
}

/** Puts the parts of each queue together, by name. */
export function depthsOf(parts: readonly DepthPart[], now: number): QueueDepth[] {
  const queues = new Map<string, QueueDepth>();
  for (const part of parts) {
    const { queue } = part;
    const none = { queue, due: 0, later: 0, active: 0, blocked: 0, oldestDueAt: null, isExact: true };
    queues.set(queue, added(queues.get(queue) ?? none, part, now));
  }
  return [...queues.values()].sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

function added(depth: QueueDepth, { state, jobs, due, firstAt }: DepthPart, now: number): QueueDepth {
  if (state !== "waiting") return { ...depth, [state]: depth[state] + jobs };
  const oldest = Math.min(depth.oldestDueAt?.getTime() ?? Number.POSITIVE_INFINITY, firstAt ?? now + 1);
  return {
    ...depth,
    due: depth.due + due,
    later: depth.later + jobs - due,
    oldestDueAt: oldest <= now ? new Date(oldest) : null,
  };
}
