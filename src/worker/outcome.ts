import type { AnyDefinition } from "../definition.ts";
import { EscapementError, recordError, UnrecoverableError } from "../errors.ts";
import { Snooze, type StopCause } from "../handler.ts";
import { jsonLoss } from "../json-loss.ts";
import { afterFailure, afterStoreFailure, type Outcome, resultNotKept, type Success } from "../state.ts";
import type { ClaimedJob } from "../store/claims.ts";

/** How a handler ended. */
export type Ending =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  /** It failed because the store did, under its `tx`: nothing of that was committed, as far as is known. */
  | { readonly kind: "store-failed"; readonly error: unknown }
  /** It was not called: the job's input does not fit the schema. */
  | { readonly kind: "unreadable"; readonly error: unknown }
  /** Its thread is gone, without an answer and without having been asked to go. */
  | { readonly kind: "crashed"; readonly reason: string };

/** Decides what to report to the store. Pure: the same ending gives the same outcome. */
export function decideOutcome(
  ending: Exclude<Ending, { readonly kind: "unreadable" }>,
  stopCause: StopCause | null,
  job: ClaimedJob,
  definition: AnyDefinition,
  random: number,
  maxResultBytes: number,
): Outcome {
  const fail = (error: unknown, unrecoverable: boolean): Outcome =>
    afterFailure(job, { error: recordedOf(error), unrecoverable }, definition.backoff, random);

  if (ending.kind === "crashed") return { kind: "crash", reason: ending.reason };
  if (stopCause === "timeout") {
    return fail(ending.kind === "threw" ? ending.error : timeoutError(job, definition), false);
  }
  if (ending.kind === "threw" || ending.kind === "store-failed") {
    const interrupted = stopCause === "shutdown" || stopCause === "lease-lost";
    // An interruption is not the handler's failure: it uses up no attempt. At-most-once has no second attempt.
    if (interrupted && job.delivery !== "at-most-once") return { kind: "snooze", delayMs: 0 };
    if (ending.kind === "store-failed") return afterStoreFailure(job, recordedOf(ending.error), random);
    return fail(ending.error, isUnrecoverable(ending.error));
  }
  if (ending.value instanceof Snooze) {
    if (job.delivery !== "at-most-once") return { kind: "snooze", delayMs: ending.value.delayMs };
    return fail(
      new EscapementError(
        "delivery-unsupported",
        "an at-most-once job cannot be snoozed once it has started",
      ),
      true,
    );
  }
  return succeedWith(ending.value, maxResultBytes);
}

/** A claim that was never started goes back as it came. */
export const released: Outcome = { kind: "release" };

/** What is recorded of a handler that did not settle in the time a shutdown gives. */
export function abandoned(job: ClaimedJob, leaseMs: number): Outcome {
  // It may still be running, so it is not started elsewhere before the lease would have ended.
  if (job.delivery !== "at-most-once") return { kind: "snooze", delayMs: leaseMs };
  return { kind: "lose", reason: "its handler was still running when the process stopped" };
}

function recordedOf(error: unknown): string {
  return JSON.stringify(recordError(error));
}

function isUnrecoverable(error: unknown): boolean {
  return (
    error instanceof UnrecoverableError ||
    (error instanceof EscapementError && error.code === "invalid-input")
  );
}

function timeoutError(job: ClaimedJob, definition: AnyDefinition): Error {
  const error = new Error(
    `job ${JSON.stringify(job.id)} took longer than its timeout of ${definition.timeoutMs} ms`,
  );
  error.name = "TimeoutError";
  return error;
}

/** What a handler in a thread returned that cannot leave it. */
export class UnkeptValue {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/** The work is done, so a result that cannot be kept must not undo it: it is left out, and the success says why. */
export function succeedWith(value: unknown, maxBytes: number): Success {
  const kept = encodeKept(value, maxBytes);
  if (typeof kept !== "object") return { kind: "succeed", result: kept ?? null };
  return { kind: "succeed", result: null, notKept: `${resultNotKept}${kept.why}` };
}

/** The JSON of what a handler gave, undefined for nothing; or why it cannot be kept. */
export function encodeKept(value: unknown, maxBytes: number): string | undefined | { readonly why: string } {
  if (value instanceof UnkeptValue) return value;
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    return { why: whyNoJson(error) };
  }
  if (text === undefined) return { why: whyNoText(value) };
  const bytes = text.length * 3 <= maxBytes ? 0 : Buffer.byteLength(text);
  if (bytes > maxBytes) {
    const counted = [bytes, maxBytes].map((one) => one.toLocaleString("en"));
    return { why: `it has ${counted[0]} bytes of JSON, ${counted[1]} are allowed` };
  }
  const loss = jsonLoss(value, text);
  return loss === null ? text : { why: whyLost(loss) };
}

export function whyNoText(value: unknown): string {
  return `a ${typeof value} cannot be written as JSON`;
}

/** @param loss what {@link jsonLoss} has found. */
export function whyLost(loss: string): string {
  return `JSON would lose ${loss}`;
}

export function whyNoJson(error: unknown): string {
  const [line = ""] = recordError(error).message.split("\n");
  return `it cannot be written as JSON (${line})`;
}
