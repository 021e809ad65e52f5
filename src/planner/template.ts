import { describe } from "../errors.ts";
import { deliveries } from "../job.ts";
import type { NewJob } from "../store/jobs.ts";
import { withoutTrace } from "../telemetry/trace.ts";
import { isObject, parseObject, unreadable } from "./parse-object.ts";

/** What all jobs of a schedule have in common: a new job without what belongs to its occurrence. */
export type JobTemplate = Omit<
  NewJob,
  "id" | "runAt" | "delayMs" | "fireAt" | "schedule" | "slot" | "after" | "afterFailure"
>;

/** As the store keeps it. Any planner can make jobs from it, even one that does not know the definition. */
export function encodeTemplate(job: NewJob): string {
  const template: JobTemplate = {
    name: job.name,
    queue: job.queue,
    delivery: job.delivery,
    input: job.input,
    priority: job.priority,
    // The trace of the caller that made the schedule is not that of its jobs.
    tags: withoutTrace(job.tags),
    expireInMs: job.expireInMs,
    attempts: job.attempts,
    maxCrashes: job.maxCrashes,
    unique: job.unique,
    debounce: job.debounce,
    concurrencyKey: job.concurrencyKey,
    rateKey: job.rateKey,
    retention: job.retention,
    relayed: job.relayed,
  };
  return JSON.stringify(template);
}

/** @throws EscapementError `unreadable-row` where it is not what {@link encodeTemplate} wrote: one such job makes the store refuse all it comes with. */
export function decodeTemplate(text: string): JobTemplate {
  const template = parseObject(text, "job");
  const wrong = Object.entries(checks).find(([field, isRight]) => !isRight(template[field]));
  if (wrong !== undefined) throw unreadable("job", `its ${wrong[0]} is ${describe(template[wrong[0]])}`);
  // Each of its fields has been checked.
  return template as unknown as JobTemplate;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string" && value !== "";
const isWhole: Check = (value) => Number.isSafeInteger(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const withFields =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([field, check]) => check(value[field]));
const isSpan: Check = (value) => typeof value === "number" && value >= 0;

const checks: Readonly<Record<keyof JobTemplate, Check>> = {
  name: isText,
  queue: isText,
  delivery: (value) => deliveries.some((delivery) => delivery === value),
  input: isText,
  priority: isWhole,
  tags: (value) => Array.isArray(value) && value.every((tag) => typeof tag === "string"),
  expireInMs: orNull(isSpan),
  attempts: isWhole,
  maxCrashes: isWhole,
  unique: orNull(withFields({ key: isText, forMs: orNull(isSpan) })),
  debounce: orNull(withFields({ key: isText, waitMs: isSpan, maxMs: orNull(isSpan) })),
  concurrencyKey: orNull(isText),
  rateKey: orNull(isText),
  relayed: (value) => typeof value === "boolean",
  retention: orNull(
    withFields({
      succeededMs: orNull(isSpan),
      cancelledMs: orNull(isSpan),
      deadMs: orNull(isSpan),
      lostMs: orNull(isSpan),
    }),
  ),
};
