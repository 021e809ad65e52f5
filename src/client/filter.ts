import { describe, EscapementError } from "../errors.ts";
import { deliveries, jobStates } from "../job.ts";
import { checkDate, checkKnown, checkOneOf } from "../options.ts";
import type { JobFilter } from "../store.ts";

const listKeys = ["ids", "states", "names", "queues", "deliveries", "tags"] as const;
const dateKeys = ["enqueuedAfter", "enqueuedBefore", "runAfter", "runBefore"] as const;

/** Refuses a filter that would quietly match something else than was meant, most of all a misspelt one that matches everything. */
export function checkFilter(filter: JobFilter): JobFilter {
  checkKnown(filter, [...listKeys, ...dateKeys, "schedule"], "a filter");
  for (const key of listKeys) {
    const values: unknown = filter[key];
    if (values !== undefined && !(Array.isArray(values) && values.every((one) => typeof one === "string"))) {
      throw new EscapementError(
        "invalid-option",
        `expected ${key} of a filter to be a list of texts, got ${describe(values)}`,
      );
    }
  }
  for (const state of filter.states ?? []) checkOneOf(state, jobStates, "states of a filter");
  for (const delivery of filter.deliveries ?? []) checkOneOf(delivery, deliveries, "deliveries of a filter");
  for (const key of dateKeys) if (filter[key] !== undefined) checkDate(filter[key], `${key} of a filter`);
  return filter;
}
