import type { NewJob, Retention } from "../../../store/jobs.ts";

/** A string that the server can store: it accepts neither the zero character nor a lone surrogate. */
export function clean(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes("\0") ? whole.replaceAll("\0", "\uFFFD") : whole;
}

/** A string literal for a statement without parameters, whatever `standard_conforming_strings` says. */
export function literal(text: string): string {
  return `E'${clean(text).replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** A list in Postgres' own syntax, so it needs no help from the client: `{"a","b",NULL}`. */
export function textList(values: readonly (string | null)[]): string {
  let list = "{";
  for (const value of values) {
    if (list.length > 1) list += ",";
    list += value === null ? "NULL" : `"${escapeItem(clean(value))}"`;
  }
  return `${list}}`;
}

function escapeItem(text: string): string {
  return text.includes('"') || text.includes("\\") ? text.replaceAll(/["\\]/g, "\\$&") : text;
}

export function numberList(values: readonly (number | null)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

/** JSON whose strings the server can store. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === "string" ? clean(item) : item));
}

export function toMs(instant: Date | null): number | null {
  return instant === null ? null : instant.getTime();
}

/** Whether it depends on other jobs: it has parents, or a key that another job may hold. */
export function isBound(job: NewJob): boolean {
  return job.unique !== null || job.debounce !== null || job.after.length > 0;
}

/** What many jobs of a batch have in common. A missing field is null. */
export function kindOf(job: NewJob) {
  return {
    name: job.name,
    queue: job.queue,
    delivery: job.delivery,
    priority: job.priority,
    delay_ms: Math.trunc(job.delayMs),
    attempts: job.attempts,
    max_crashes: job.maxCrashes,
    ...(job.fireAt === null ? {} : { fire_at: job.fireAt.getTime() }),
    ...(job.expireInMs === null ? {} : { expire_in_ms: Math.trunc(job.expireInMs) }),
    ...(job.relayed ? { relayed: true } : {}),
    ...(job.concurrencyKey === null ? {} : { concurrency_key: job.concurrencyKey }),
    ...(job.rateKey === null ? {} : { rate_key: job.rateKey }),
    ...(job.schedule === null ? {} : { schedule: job.schedule }),
    ...(job.afterFailure === "run" ? { after_failure: "run" } : {}),
    ...(job.retention === null ? {} : { retention: keptMs(job.retention) }),
    ...(job.tags.length === 0 ? {} : { tags: job.tags }),
  };
}

/** Whether two jobs are certainly of one kind. */
export function isSameKind(a: NewJob, b: NewJob): boolean {
  return (
    a.name === b.name &&
    a.queue === b.queue &&
    a.delivery === b.delivery &&
    a.priority === b.priority &&
    a.delayMs === b.delayMs &&
    a.attempts === b.attempts &&
    a.maxCrashes === b.maxCrashes &&
    a.expireInMs === b.expireInMs &&
    a.relayed === b.relayed &&
    a.concurrencyKey === b.concurrencyKey &&
    a.rateKey === b.rateKey &&
    a.schedule === b.schedule &&
    a.afterFailure === b.afterFailure &&
    a.retention === b.retention &&
    a.fireAt === null &&
    b.fireAt === null &&
    a.tags.length === 0 &&
    b.tags.length === 0
  );
}

/** A whole job, as enqueue_bound takes it. */
export function boundJob(job: NewJob) {
  return {
    ...kindOf(job),
    id: job.id,
    input: job.input,
    slot: job.slot,
    run_at: toMs(job.runAt),
    after: job.after,
    ...(job.unique === null ? {} : { unique_key: job.unique.key, unique_ms: truncOrNull(job.unique.forMs) }),
    ...(job.debounce === null
      ? {}
      : {
          debounce_key: job.debounce.key,
          wait_ms: Math.trunc(job.debounce.waitMs),
          max_ms: truncOrNull(job.debounce.maxMs),
        }),
  };
}

/** In the order of the column `retention`. */
function keptMs({ succeededMs, cancelledMs, deadMs, lostMs }: Retention): (number | null)[] {
  return [succeededMs, cancelledMs, deadMs, lostMs].map(truncOrNull);
}

function truncOrNull(value: number | null): number | null {
  return value === null ? null : Math.trunc(value);
}
