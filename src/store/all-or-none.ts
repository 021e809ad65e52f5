import type { EnqueueResult, NewJob } from "./jobs.ts";

/** Thrown inside a store to undo an all-or-none batch when part of it was refused. */
export class RefusedBatch extends Error {
  override readonly name = "RefusedBatch";
  readonly results: readonly EnqueueResult[];

  constructor(results: readonly EnqueueResult[]) {
    super("a part of the batch was refused");
    this.results = results;
  }
}

/** Passes results on, or throws {@link RefusedBatch}. */
export function assertNoneRefused(results: EnqueueResult[]): EnqueueResult[] {
  if (results.some(({ outcome }) => outcome === "refused")) throw new RefusedBatch(results);
  return results;
}

/**
 * The answer to a batch of which nothing was written. The first that was refused names its parent; later refusals may
 * only be a consequence.
 */
export function refuseAll(jobs: readonly NewJob[], results: readonly EnqueueResult[]): EnqueueResult[] {
  const first = results.findIndex(({ outcome }) => outcome === "refused");
  return jobs.map(({ id }, index) => {
    const result = results[index];
    return index === first && result !== undefined ? result : { id, outcome: "refused" };
  });
}

/** Answers for a batch that was undone by {@link RefusedBatch}. */
export async function allOrNone(
  jobs: readonly NewJob[],
  work: () => Promise<EnqueueResult[]>,
): Promise<EnqueueResult[]> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RefusedBatch) return refuseAll(jobs, error.results);
    throw error;
  }
}

/**
 * By the place of each job, those of its parents that do not come before it in the batch; a repeated id asks for
 * nothing.
 */
export function outsideParents(jobs: readonly NewJob[]): string[][] {
  const before = new Set<string>();
  return jobs.map(({ id, after }) => {
    const outside = before.has(id) ? [] : after.filter((parent) => !before.has(parent));
    before.add(id);
    return outside;
  });
}
