/** A window in which a run must start. */
export interface Target {
  readonly fromMs: number;
  readonly untilMs: number;
  /** A target that may, but need not, have a run: the rule was perhaps not there yet, or no longer. */
  readonly optional: boolean;
}

export interface Matching {
  /** Targets that must have a run and have none. */
  readonly missed: readonly Target[];
  /** Starts that fit no target. */
  readonly extra: readonly number[];
}

/**
 * Assigns runs to targets, blind to what the runs say of themselves: sweep by start, and each run takes the open target whose time is
 * up first. For points in intervals that greedy choice is a largest matching. What must be met is matched without regard to what may
 * be, and what is left over with regard to both, so that each answer is the kindest there is.
 */
export function matchRuns(targets: readonly Target[], starts: readonly number[]): Matching {
  const required = targets.filter(({ optional }) => !optional);
  return { missed: sweep(required, starts).missed, extra: sweep(targets, starts).extra };
}

function sweep(targets: readonly Target[], starts: readonly number[]): { missed: Target[]; extra: number[] } {
  const pending = targets.toSorted((a, b) => a.fromMs - b.fromMs);
  const open: Target[] = [];
  const missed: Target[] = [];
  const extra: number[] = [];
  let next = 0;
  const close = (nowMs: number): void => {
    for (let first = open[0]; first !== undefined && first.untilMs < nowMs; first = open[0]) {
      open.shift();
      missed.push(first);
    }
  };
  for (const start of starts.toSorted((a, b) => a - b)) {
    for (let target = pending[next]; target !== undefined && target.fromMs <= start; target = pending[++next])
      insert(open, target);
    close(start);
    if (open.shift() === undefined) extra.push(start);
  }
  for (const target of pending.slice(next)) insert(open, target);
  close(Number.POSITIVE_INFINITY);
  return { missed, extra };
}

/** Keeps the earliest deadline in front. */
function insert(open: Target[], target: Target): void {
  const place = open.findIndex(({ untilMs }) => untilMs > target.untilMs);
  if (place < 0) open.push(target);
  else open.splice(place, 0, target);
}
