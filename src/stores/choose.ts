import type { ClaimParams } from "../store/claims.ts";

/** What decides whether a due job may be claimed now. */
export interface Limited {
  readonly queue: string;
  readonly name: string;
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
}

/** A due job whose turn may come. */
export interface DueJob extends Limited {
  readonly seq: number;
  readonly priority: number;
  readonly runAt: number;
  readonly lane: string | null;
  /** It may not be claimed ahead. */
  readonly direct: boolean;
}

/** Claim order: higher priority first, then the oldest runAt, then enqueue order. */
export function byTurn(a: DueJob, b: DueJob): number {
  return b.priority - a.priority || a.runAt - b.runAt || a.seq - b.seq;
}

/** Everything that this claimer could run, read before any job is taken. */
export interface ClaimView<Job extends DueJob> {
  readonly limits: {
    isLimited(queue: string): boolean;
    opensAt(job: Limited): number;
    count(job: Limited): void;
  };
  /** By turn. */
  readonly fragile: readonly Job[];
  /** Plain jobs in groups, each by turn. What stops one job of a group stops them all. */
  readonly plain: readonly (readonly Job[])[];
  readonly lanes: readonly { readonly due: readonly Job[] }[];
  /** When there may be more plain and fragile jobs to offer. */
  readonly laterAt: number;
}

export function aheadOf({ ahead }: ClaimParams): number {
  return Math.max(0, ahead ?? 0);
}

/**
 * The jobs that a claim takes. The first `params.limit` of them are direct claims, the others are ahead. The memory store chooses by
 * itself: it is the specification that this is compared with.
 */
export function choose<Job extends DueJob>(view: ClaimView<Job>, params: ClaimParams, now: number): Job[] {
  const { limits } = view;
  if (params.alone && params.limit > 0) {
    const alone = view.fragile.find((job) => limits.opensAt(job) <= now);
    if (alone !== undefined) {
      limits.count(alone);
      return [alone];
    }
  }
  const left = new Map(params.queues?.map(({ queue, limit }) => [queue, limit]));
  const waitingLanes = new Set<string>();
  const taken: Job[] = [];
  const limit = Math.max(0, params.limit);
  for (const job of inTurn(view)) {
    if (taken.length >= limit + aheadOf(params)) break;
    if (job.lane !== null && waitingLanes.has(job.lane)) continue;
    const leftInQueue = left.get(job.queue) ?? Number.POSITIVE_INFINITY;
    if (leftInQueue > 0 && limits.opensAt(job) <= now) {
      if (taken.length >= limit && !mayGoAhead(view, job, taken, now)) break;
      left.set(job.queue, leftInQueue - 1);
      limits.count(job);
      taken.push(job);
    } else if (job.lane !== null) {
      waitingLanes.add(job.lane);
    }
  }
  return taken;
}

function inTurn<Job extends DueJob>({ plain, lanes }: ClaimView<Job>): readonly Job[] {
  const single = plain[0];
  // The most common case needs no sorting.
  if (single !== undefined && plain.length === 1 && lanes.length === 0) return single;
  return [...plain.flat(), ...lanes.flatMap(({ due }) => due)].sort(byTurn);
}

/** A lane that can offer a job may have an older one than was read: as long as there is one, nothing is taken ahead. */
function mayGoAhead<Job extends DueJob>(
  { limits, lanes }: ClaimView<Job>,
  job: Job,
  taken: readonly Job[],
  now: number,
): boolean {
  if (job.direct || limits.isLimited(job.queue)) return false;
  return !lanes.some(({ due }) =>
    due.some((other) => !taken.includes(other) && limits.opensAt(other) <= now),
  );
}

/** Whether a job that must run alone is left that could start now. */
export function leavesFragile<Job extends DueJob>(
  { limits, fragile }: ClaimView<Job>,
  taken: readonly Job[],
  now: number,
): boolean {
  return fragile.some((job) => !taken.includes(job) && limits.opensAt(job) <= now);
}

/** When the same claim may find more fragile and plain jobs: now, when one becomes due, or when a rate window ends. */
export function nextOpening<Job extends DueJob>(
  { limits, fragile, plain, laterAt }: ClaimView<Job>,
  { alone }: ClaimParams,
  taken: readonly Job[],
): number {
  const gone = new Set(taken);
  // The last job of a group is enough to judge the rest.
  const lasts = plain.flatMap((group) => group.at(-1) ?? []);
  const left = [...(alone ? fragile : []), ...lasts].filter((job) => !gone.has(job));
  return Math.min(laterAt, ...left.map((job) => limits.opensAt(job)));
}
