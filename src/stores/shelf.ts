import { isFragile } from "../state.ts";

export type Shelf = "plain" | "lane" | "fragile" | "relay";

/** Where a waiting job is found: each shelf has its own index or lines, so none slows another. */
export function shelfOf(job: {
  readonly relayed: boolean;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly lane: string | null;
}): Shelf {
  if (job.relayed) return "relay";
  if (isFragile(job)) return "fragile";
  return job.lane === null ? "plain" : "lane";
}
