const concurrencyLane = "concurrency ";

/** Keyed jobs wait in a lane; null for plain ones. */
export function laneOf(job: {
  readonly concurrencyKey: string | null;
  readonly rateKey: string | null;
}): string | null {
  if (job.concurrencyKey !== null) return laneOfKey(job.concurrencyKey);
  return job.rateKey === null ? null : `rate ${job.rateKey}`;
}

export function laneOfKey(concurrencyKey: string): string {
  return concurrencyLane + concurrencyKey;
}

/** The lane's concurrencyKey, null if it comes from a rateKey. */
export function keyOfLane(lane: string): string | null {
  return lane.startsWith(concurrencyLane) ? lane.slice(concurrencyLane.length) : null;
}
