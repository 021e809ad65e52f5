import { idOf, isJobLike, type JobRef } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import type { SelectParams, SelectResult } from "../store/jobs.ts";
import type { JobFilter } from "../store/questions.ts";
import { checkChangeFilter } from "./filter.ts";

/** Which jobs a bulk verb is about: one, several, or all that match. */
export type Target = JobRef | readonly JobRef[] | JobFilter;

/** How many jobs met which outcome. */
export type Tally<O extends string> = Readonly<Partial<Record<O, number>>>;

/** How many jobs one trip changes: a redrive of a million must not occupy the store the whole time. */
const selectChunk = 1_000;

/** Runs a bulk verb over its target, page by page, and counts the outcomes. */
export async function runOver<O extends string>(
  runtime: Runtime,
  verb: (params: SelectParams) => Promise<SelectResult<O>>,
  target: Target,
  reason: string | null,
): Promise<Tally<O>> {
  const tally: Partial<Record<O, number>> = {};
  const add = (page: SelectResult<O>): void => {
    for (const { outcome } of page.results) tally[outcome] = (tally[outcome] ?? 0) + 1;
  };
  if (typeof target === "string" || Array.isArray(target) || isJobLike(target)) {
    const jobs: readonly JobRef[] = Array.isArray(target) ? target : [target as JobRef];
    const ids = jobs.map((job) => idOf(job));
    for (let start = 0; start < ids.length; start += selectChunk) {
      const chunk = ids.slice(start, start + selectChunk);
      add(await withRetries(runtime, () => verb({ select: { ids: chunk }, reason })));
    }
    return tally;
  }
  const filter = checkChangeFilter(target as JobFilter);
  let cursor: string | null = null;
  do {
    const select = { filter, limit: selectChunk, cursor };
    const page: SelectResult<O> = await withRetries(runtime, () => verb({ select, reason }));
    add(page);
    cursor = page.cursor;
  } while (cursor !== null);
  return tally;
}
