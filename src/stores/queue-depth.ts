import type { CountRow, QueueDepth } from "../store/questions.ts";

/** Jobs of one queue that are in one state. */
export interface DepthPart {
  readonly queue: string;
  readonly state: "waiting" | "active" | "blocked";
  readonly jobs: number;
  /** Of the waiting ones, how many are due, and the runAt of the first, due or not. */
  readonly due: number;
  readonly firstAt: number | null;
  /** False if more of them may be due. @default true */
  readonly isExact?: boolean;
}

/** How many waiting plain jobs a look at the depths goes through on either side of now, over all queues. */
export const maxLooked = 100_000;

/** How many on either side of each of these groups. */
export function lookedPerGroup(groups: number): number {
  return Math.max(1_000, Math.floor(maxLooked / Math.max(1, groups)));
}

/** Waiting plain jobs of one queue, name and priority: how many are due, and due later, as far as was examined. */
export interface PlainGroup {
  readonly queue: string;
  readonly due: number;
  readonly later: number;
  /** The runAt of the first that is due. */
  readonly firstAt: number | null;
}

/**
 * The plain jobs of each queue, of which the number is known. Where all that are due were seen, or all that are due later, so are the others;
 * else more are due than are counted.
 *
 * @param most how many were looked at on either side of each group.
 * @param waiting by queue, how many plain jobs wait.
 */
export function plainParts(
  groups: readonly PlainGroup[],
  most: number,
  waiting: ReadonlyMap<string, number>,
): DepthPart[] {
  return [...waiting].map(([queue, jobs]) => {
    const own = groups.filter((group) => group.queue === queue);
    const sum = (side: "due" | "later"): number => own.reduce((total, group) => total + group[side], 0);
    const saw = (side: "due" | "later"): boolean => own.every((group) => group[side] < most);
    const due = !saw("due") && saw("later") ? jobs - sum("later") : sum("due");
    const times = own.flatMap(({ firstAt }) => (firstAt === null ? [] : [firstAt]));
    const firstAt = times.length === 0 ? null : Math.min(...times);
    // What is counted and what is looked at may be a moment apart.
    return {
      queue,
      state: "waiting",
      jobs: Math.max(jobs, due),
      due,
      firstAt,
      isExact: saw("due") || saw("later"),
    };
  });
}

/** How many plain jobs wait in each queue: all that wait, less those that are elsewhere. */
export function plainWaiting(
  counts: readonly Required<CountRow>[],
  elsewhere: readonly DepthPart[],
): Map<string, number> {
  const waiting = new Map<string, number>();
  const add = (queue: string, jobs: number): Map<string, number> =>
    waiting.set(queue, (waiting.get(queue) ?? 0) + jobs);
  for (const { queue, state, count } of counts) if (state === "waiting") add(queue, count);
  for (const { queue, state, jobs } of elsewhere) if (state === "waiting") add(queue, -jobs);
  return new Map([...waiting].filter(([, jobs]) => jobs > 0));
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

function added(
  depth: QueueDepth,
  { state, jobs, due, firstAt, isExact = true }: DepthPart,
  now: number,
): QueueDepth {
  if (state !== "waiting") return { ...depth, [state]: depth[state] + jobs };
  const oldest = Math.min(depth.oldestDueAt?.getTime() ?? Number.POSITIVE_INFINITY, firstAt ?? now + 1);
  return {
    ...depth,
    due: depth.due + due,
    later: depth.later + jobs - due,
    oldestDueAt: oldest <= now ? new Date(oldest) : null,
    isExact: depth.isExact && isExact,
  };
}
