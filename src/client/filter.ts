import { describe, EscapementError } from "../errors.ts";
import { deliveries, jobStates } from "../job.ts";
import { checkDate, checkKnown, checkOneOf } from "../options.ts";
import type { JobFilter, ScanFilter } from "../store/questions.ts";
import { maxTags } from "./new-job.ts";

const listKeys = ["ids", "states", "names", "queues", "deliveries", "tags"] as const;
const dateKeys = ["enqueuedAfter", "enqueuedBefore", "runAfter", "runBefore"] as const;

/** What no store can keep is in none of them; some would answer a search for it with their own error. */
export function isSought(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\0");
}

/** For verbs that change what matches: a condition that is undefined, or no condition at all, would mean everything. */
export function checkChangeFilter(filter: JobFilter): JobFilter {
  checkFilter(filter);
  checkHasCondition(filter);
  return filter;
}

/** Refuses a filter of which a condition is missing: `tags` without a tag is none either, since every job has all of no tags. */
export function checkHasCondition(filter: ScanFilter): void {
  const conditions = Object.entries(filter);
  const missing = conditions.find(
    ([key, value]) => value === undefined || (key === "tags" && Array.isArray(value) && value.length === 0),
  );
  if (missing === undefined && conditions.length > 0) return;
  const what = missing === undefined ? "a condition" : `${missing[0]} to be given`;
  throw new EscapementError(
    "invalid-option",
    `expected ${what}, since without it every job would match; to match all of them, name the states`,
  );
}

/** Refuses a filter that would quietly match something other than intended, above all a misspelt one that matches everything. */
export function checkFilter(filter: JobFilter): JobFilter {
  checkKnown(filter, [...listKeys, ...dateKeys, "schedule"], "a filter");
  for (const key of listKeys) {
    const values: unknown = filter[key];
    if (values !== undefined && !(Array.isArray(values) && values.every(isSought))) {
      throw new EscapementError(
        "invalid-option",
        `expected ${key} of a filter to be a list of strings without NUL or lone surrogates, got ${describe(values)}`,
      );
    }
  }
  if (filter.schedule !== undefined && !isSought(filter.schedule)) {
    throw new EscapementError(
      "invalid-option",
      `expected schedule of a filter to be a string without NUL or lone surrogates, got ${describe(filter.schedule)}`,
    );
  }
  if ((filter.tags?.length ?? 0) > maxTags) {
    throw new EscapementError(
      "invalid-option",
      `expected tags of a filter to be at most ${maxTags}, which is what a job can have, got ${filter.tags?.length}`,
    );
  }
  for (const state of filter.states ?? []) checkOneOf(state, jobStates, "states of a filter");
  for (const delivery of filter.deliveries ?? []) checkOneOf(delivery, deliveries, "deliveries of a filter");
  for (const key of dateKeys) if (filter[key] !== undefined) checkDate(filter[key], `${key} of a filter`);
  return filter;
}

/** As {@link checkFilter}, with the terms of a scan. */
export function checkScanFilter(filter: ScanFilter): ScanFilter {
  const { endedAfter, endedBefore, error, text, ...base } = filter;
  checkFilter(base);
  if (endedAfter !== undefined) checkDate(endedAfter, "endedAfter of a filter");
  if (endedBefore !== undefined) checkDate(endedBefore, "endedBefore of a filter");
  for (const [key, value] of Object.entries({ error, text })) {
    if (value === undefined) continue;
    if (!isSought(value) || value === "" || value.length > longestText) {
      throw new EscapementError(
        "invalid-option",
        `expected ${key} of a filter to be a string of 1 to ${longestText} characters without NUL or lone surrogates, got ${describe(value)}`,
      );
    }
  }
  return filter;
}

const longestText = 1_000;
