import { ApiError, type ClientOptions, type Send, type Sent, sender } from "./request.ts";
import type {
  AskedRule,
  AuditPage,
  Backfilled,
  Changed,
  Children,
  Counts,
  Definitions,
  Failures,
  Filter,
  Health,
  History,
  JobChanges,
  JobResult,
  JobStory,
  JobsPage,
  Limits,
  NewJob,
  NewRule,
  NewSchedule,
  Nodes,
  Occurrences,
  Overview,
  Partitions,
  QueueConfig,
  Queues,
  Receipt,
  RulePreview,
  Schedule,
  ScheduleOutcome,
  Schedules,
  Span,
  Task,
  Times,
  UpdateResult,
} from "./wire.ts";

/** A page of jobs: which, and how many. */
export interface JobsQuery extends Filter {
  readonly order?: "newest" | "oldest";
  readonly limit?: number;
  readonly lookAt?: number;
  readonly cursor?: string | null;
}

export interface Reasoned {
  /** Kept in the trail of the job and in the audit log. */
  readonly reason?: string;
}

export interface BulkOptions extends Reasoned {
  /** Only counts, and changes nothing. */
  readonly dryRun?: boolean;
}

/** Asks an API for what the store of another process holds. */
export type Client = ReturnType<typeof createClient>;

const at = (...words: readonly string[]): string => `/${words.map(encodeURIComponent).join("/")}`;
const longestWaitMs = 20_000;

/**
 * A client of the HTTP API: it enqueues and asks from a process that cannot reach the store. It needs `fetch` and nothing else.
 *
 * @example
 * const client = createClient({ url: "https://ops.example.com/escapement", token: process.env.ESCAPEMENT_TOKEN });
 * const { id } = await client.enqueue({ name: "invoice", input: { customer: "42" } });
 * const result = await client.result(id);
 */
export function createClient(options: ClientOptions) {
  const send = sender(options);
  return { ...jobVerbs(send), ...fleetVerbs(send) };
}

function jobVerbs(send: Send) {
  const get = <T>(path: string, query: object = {}): Promise<T> => send<T>("GET", path, { query });
  const post = <T>(path: string, body: object = {}): Promise<T> => send<T>("POST", path, { body });
  return {
    /** A request without an id gets its own key, so one whose answer was lost is sent again and is still one job. */
    enqueue: (
      job: NewJob,
      { idempotencyKey }: { readonly idempotencyKey?: string } = {},
    ): Promise<Receipt> => {
      const key = job.id === undefined ? (idempotencyKey ?? crypto.randomUUID()) : idempotencyKey;
      const headers: Sent["headers"] = key === undefined ? {} : { "Idempotency-Key": key };
      return send("POST", "/jobs", { body: job, headers, isRepeatable: true });
    },
    get: (id: string): Promise<JobStory> => get(at("jobs", id)),
    list: (query: JobsQuery = {}): Promise<JobsPage> => get("/jobs", query),
    /** Waits until a job has succeeded, and returns its result. */
    result: async (id: string, { timeoutMs = 300_000 } = {}): Promise<unknown> => {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const leftMs = Math.max(0, deadline - performance.now());
        const waitMs = Math.ceil(Math.min(longestWaitMs, leftMs));
        const { state, hasEnded, result, error, reason } = await get<JobResult>(at("jobs", id, "result"), {
          waitMs,
        });
        if (state === "succeeded") return result;
        const why = error === null ? (reason ?? "no reason is known") : `${error.name}: ${error.message}`;
        if (hasEnded) throw new ApiError("job-failed", `job ${JSON.stringify(id)} is ${state}: ${why}`, 409);
        if (waitMs === 0)
          throw new ApiError(
            "result-timeout",
            `job ${JSON.stringify(id)} is still ${state} after ${timeoutMs} ms`,
            504,
          );
      }
    },
    edit: (id: string, changes: JobChanges): Promise<UpdateResult> =>
      send("PATCH", at("jobs", id), { body: changes }),
    cancel: (id: string, why: Reasoned = {}): Promise<Changed> => post(at("jobs", id, "cancel"), why),
    redrive: (id: string, why: Reasoned = {}): Promise<Changed> => post(at("jobs", id, "redrive"), why),
    runNow: (id: string, why: Reasoned = {}): Promise<UpdateResult> => post(at("jobs", id, "run-now"), why),
    delete: (id: string, why: Reasoned = {}): Promise<Changed> =>
      send("DELETE", at("jobs", id), { query: why }),

    cancelAll: (filter: Filter, more: BulkOptions = {}): Promise<Task> =>
      post("/jobs/cancel", { filter, ...more }),
    runNowAll: (filter: Filter, more: BulkOptions = {}): Promise<Task> =>
      post("/jobs/run-now", { filter, ...more }),
    prioritizeAll: (filter: Filter, priority: number, more: BulkOptions = {}): Promise<Task> =>
      post("/jobs/priority", { filter, priority, ...more }),
    redriveAll: (filter: Filter, more: BulkOptions = {}): Promise<Task> =>
      post("/jobs/redrive", { filter, ...more }),
    deleteAll: (filter: Filter, more: BulkOptions = {}): Promise<Task> =>
      post("/jobs/delete", { filter, ...more }),
    task: (id: string): Promise<Task> => get(at("tasks", id)),
    stopTask: (id: string): Promise<Task> => post(at("tasks", id, "stop")),
    failures: (query: Filter & { readonly lookAt?: number } = {}): Promise<Failures> =>
      get("/failures", query),
    redriveFailures: (fingerprint: string, more: BulkOptions = {}): Promise<Task> =>
      post(at("failures", fingerprint, "redrive"), more),
  };
}

function fleetVerbs(send: Send) {
  const get = <T>(path: string, query: object = {}): Promise<T> => send<T>("GET", path, { query });
  const post = <T>(path: string, body: object = {}): Promise<T> => send<T>("POST", path, { body });
  return {
    queues: async () => (await get<Queues>("/queues")).queues,
    pauseQueue: (queue: string, why: Reasoned = {}): Promise<QueueConfig> =>
      post(at("queues", queue, "pause"), why),
    resumeQueue: (queue: string, why: Reasoned = {}): Promise<QueueConfig> =>
      post(at("queues", queue, "resume"), why),
    limitQueue: (queue: string, limits: Limits): Promise<QueueConfig> =>
      send("PATCH", at("queues", queue), { body: limits }),

    schedules: async () => (await get<Schedules>("/schedules")).schedules,
    schedule: (key: string): Promise<Schedule> => get(at("schedules", key)),
    definitions: (): Promise<Definitions> => get("/definitions"),
    children: (id: string): Promise<Children> => get(at("jobs", id, "children")),
    previewRule: (rule: AskedRule): Promise<RulePreview> => post("/schedules/preview", rule),
    changeRule: (key: string, rule: NewRule): Promise<ScheduleOutcome> =>
      send("PATCH", at("schedules", key), { body: rule }),
    putSchedule: (key: string, schedule: NewSchedule): Promise<ScheduleOutcome> =>
      send("PUT", at("schedules", key), { body: schedule }),
    removeSchedule: (key: string, why: Reasoned = {}): Promise<{ readonly removed: string }> =>
      send("DELETE", at("schedules", key), { query: why }),
    pauseSchedule: (key: string, why: Reasoned = {}): Promise<Schedule> =>
      post(at("schedules", key, "pause"), why),
    resumeSchedule: (key: string, why: Reasoned = {}): Promise<Schedule> =>
      post(at("schedules", key, "resume"), why),
    trigger: (key: string, why: Reasoned = {}): Promise<Receipt> =>
      post(at("schedules", key, "trigger"), why),
    backfill: (key: string, span: Span): Promise<Backfilled> => post(at("schedules", key, "backfill"), span),
    nextTimes: async (key: string, count = 5) =>
      (await get<Times>(at("schedules", key, "next"), { count })).times,
    occurrences: async (
      key: string,
      span: { readonly from?: string; readonly to?: string; readonly limit?: number } = {},
    ) => (await get<Occurrences>(at("schedules", key, "occurrences"), span)).occurrences,

    overview: (): Promise<Overview> => get("/overview"),
    counts: async (query: Filter & { readonly by?: string } = {}) =>
      (await get<Counts>("/counts", query)).counts,
    nodes: async () => (await get<Nodes>("/nodes")).nodes,
    partitions: (): Promise<Partitions> => get("/partitions"),
    audit: (query: AuditQuery = {}): Promise<AuditPage> => get("/audit", query),
    history: (query: HistoryQuery = {}): Promise<History> => get("/history", query),
    health: (): Promise<Health> => get("/health"),
  };
}

export interface HistoryQuery {
  /** Minutes are kept for a day, hours for 30 days. */
  readonly step?: "minute" | "hour";
  /** An instant, or how long ago: `6h`. */
  readonly since?: string;
  readonly until?: string;
  readonly queue?: string;
  readonly name?: string;
  readonly by?: "queue" | "name";
  readonly limit?: number;
}

export interface AuditQuery {
  readonly actor?: readonly string[];
  readonly action?: readonly string[];
  readonly target?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly cursor?: string | null;
}
