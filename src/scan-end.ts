/** A job that a scan found: how many jobs were looked at up to it, and its place in the order of enqueueing. */
export interface Found {
  readonly place: number;
  readonly seq: number;
}

export interface Scanned {
  /** How many jobs there were to look at, or one more than were to be. */
  readonly total: number;
  readonly lookAt: number;
  readonly limit: number;
  /** The first that match, up to the limit. */
  readonly found: readonly Found[];
  /** The seq of the last job that was to be looked at; null when there was none. */
  readonly lastSeq: number | null;
}

/** How far a scan looked, and behind which job it goes on; null when there is nothing more to look at. */
export function endOfScan({ total, lookAt, limit, found, lastSeq }: Scanned): {
  readonly looked: number;
  readonly next: number | null;
} {
  const last = found.length === limit ? found.at(-1) : undefined;
  const looked = last?.place ?? Math.min(total, lookAt);
  return { looked, next: looked < total ? (last?.seq ?? lastSeq) : null };
}
