import { describe, EscapementError } from "./errors.ts";
import { checkId } from "./names.ts";

/**
 * The result of an enqueue. It can be used wherever a job is expected.
 *
 * @typeParam Result what the definition's handler returns, as `app.result(receipt)` gives it.
 */
export interface EnqueueReceipt<Result = unknown> {
  /** The job that stands for what was asked: another one's when it was absorbed or debounced. */
  readonly id: string;
  readonly outcome: "added" | "existing" | "absorbed" | "debounced";
  /** Carries the type of the result; it has no value. */
  readonly "~result"?: Result;
}

/** Which job is meant: its id, the receipt of its enqueue, or the job itself. */
export type JobRef<Result = unknown> = string | { readonly id: string; readonly "~result"?: Result };

export function idOf(job: JobRef, what?: string): string {
  if (typeof job === "string") return checkId(job, what);
  if (isJobLike(job)) return checkId(job.id, what);
  throw new EscapementError(
    "invalid-id",
    `expected ${what ?? "a job"} to be an id or what enqueue returned, got ${describe(job)}`,
  );
}

/** Whether a value is a receipt or a job, as opposed to a filter of jobs. */
export function isJobLike(value: unknown): value is { readonly id: string } {
  return typeof value === "object" && value !== null && "id" in value && typeof value.id === "string";
}
