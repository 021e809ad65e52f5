import type { NewJob } from "../store.ts";

/** What all jobs of a schedule have in common: a new job without what is its occurrence's. */
export type JobTemplate = Omit<
  NewJob,
  "id" | "runAt" | "delayMs" | "fireAt" | "schedule" | "slot" | "after" | "afterFailure"
>;

/** As the store keeps it. Any planner can make jobs from it, also one that does not know the definition. */
export function encodeTemplate(job: NewJob): string {
  const template: JobTemplate = {
    name: job.name,
    queue: job.queue,
    delivery: job.delivery,
    input: job.input,
    priority: job.priority,
    tags: job.tags,
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

export function decodeTemplate(text: string): JobTemplate {
  return JSON.parse(text);
}
