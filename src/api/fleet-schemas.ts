import { z } from "@hono/zod-openapi";
import { deliveries, jobStates } from "../job.ts";
import { countRow, failures } from "./job-schemas.ts";
import { roles } from "./roles.ts";
import { count, duration, givenInstant, instant, name, orNull, reason } from "./words.ts";

/** Queues, schedules, nodes and the rest, as they travel. */

const rate = z.strictObject({ limit: z.int(), perMs: z.number() }).openapi("Rate");

export const queueConfig = z
  .strictObject({
    queue: z.string(),
    paused: z.boolean(),
    concurrency: z.int().nullable(),
    rate: orNull(rate),
  })
  .openapi("QueueConfig");

export const queueView = z
  .strictObject({
    queue: z.string(),
    paused: z.boolean(),
    concurrency: z.int().nullable(),
    rate: orNull(rate),
    due: count,
    later: count,
    active: count,
    blocked: count,
    oldestDueAt: instant.nullable(),
    oldestDueMs: z.number().nullable(),
    isExact: z.boolean(),
  })
  .openapi("QueueView");

export const limits = z
  .strictObject({
    concurrency: z.int().min(1).nullable().optional(),
    rate: z
      .strictObject({ limit: z.int().min(1), per: duration })
      .nullable()
      .optional(),
    reason: reason.optional(),
  })
  .openapi("Limits");

const node = z
  .strictObject({
    id: z.string(),
    host: z.string(),
    pid: z.int(),
    version: z.string(),
    roles: z.array(z.string()),
    queues: z.array(z.string()).nullable(),
    names: z.array(z.string()),
    concurrency: z.number(),
    active: z.number(),
    ttlMs: z.number().nullable(),
    running: z
      .array(z.strictObject({ id: z.string(), name: z.string(), forMs: z.number(), leaseMs: z.number() }))
      .optional()
      .openapi({
        description: "Jobs that it has been running for a second or longer, as of seenAt; the longest 20.",
      }),
    destinations: z
      .array(
        z
          .strictObject({
            transport: z.string(),
            destination: z.string(),
            failures: count.openapi({ description: "Consecutive batches that failed." }),
            error: z.string().nullable(),
          })
          .openapi("Destination"),
      )
      .optional()
      .openapi({
        description: "Where its relay publishes, as of seenAt; at most 20, those in trouble first.",
      }),
    lags: z
      .array(z.strictObject({ partition: z.int(), lagMs: z.number() }))
      .optional()
      .openapi({
        description:
          "Partitions of its relay with a job that is due and not published, as of seenAt; at most 20.",
      }),
    startedAt: instant,
    seenAt: instant,
    alive: z.boolean(),
  })
  .openapi("Node");

export const nodes = z.strictObject({ nodes: z.array(node) }).openapi("Nodes");

export const partitions = z
  .strictObject({
    wanted: count,
    partitions: z.array(
      z.strictObject({
        partition: z.int(),
        epoch: z.int(),
        firstSlot: z.int(),
        endSlot: z.int(),
        mark: instant.nullable(),
        owner: z.string().nullable(),
      }),
    ),
  })
  .openapi("Partitions");

export const overview = z
  .strictObject({
    now: instant,
    counts: z.array(countRow),
    queues: z.array(queueView),
    nodes: z.array(node),
    failures,
  })
  .openapi("Overview");

export const me = z
  .strictObject({
    actor: z.string(),
    role: z.enum(roles),
    namespace: z.string(),
    version: z.string(),
    notice: z
      .string()
      .nullable()
      .openapi({ description: "A sentence that the dashboard shows to everyone." }),
  })
  .openapi("Me");

export const definitions = z
  .strictObject({
    definitions: z.array(
      z
        .strictObject({
          name: z.string(),
          queue: z.string(),
          delivery: z.enum(deliveries),
          attempts: z.int().nullable().openapi({ description: "Null: the app's setting." }),
          transport: z
            .string()
            .nullable()
            .openapi({ description: "How its jobs are published; null: they are not." }),
          destination: z
            .string()
            .nullable()
            .openapi({ description: "Where: a topic, subject, stream or URL." }),
        })
        .openapi("Definition"),
    ),
  })
  .openapi("Definitions");

export const health = z
  .strictObject({
    now: instant,
    engine: z.string(),
    schemaVersion: z.int(),
    problems: z.array(z.string()),
    version: z.string(),
  })
  .openapi("Health");

const milliseconds = z.int().min(0);

const historyPoint = z
  .strictObject({
    at: instant.openapi({ description: "When the minute or hour begins, on the store's clock." }),
    queue: z.string().optional().openapi({ description: "With by=queue." }),
    name: z.string().optional().openapi({ description: "With by=name." }),
    succeeded: count,
    failed: count.openapi({ description: "Attempts that failed and are retried." }),
    crashed: count.openapi({
      description: "Attempts whose holder died or went silent, and that are retried.",
    }),
    dead: count,
    lost: count,
    cancelled: count.openapi({ description: "Cancelled while active, or expired." }),
    existing: count.openapi({ description: "Enqueues of an id that already existed." }),
    absorbed: count.openapi({ description: "Enqueues absorbed by a unique key." }),
    stale: count.openapi({ description: "Outcomes refused because another claim had taken over." }),
    namingRetries: count.openapi({
      description: "Dispatches retried because the batch could not be named in the store.",
    }),
    publishRetries: count.openapi({
      description: "Dispatches retried because the broker refused them or did not answer.",
    }),
    rollbackRetries: count.openapi({ description: "Rollbacks of dispatches that could not be written." }),
    runs: count.openapi({ description: "How many handlers were timed." }),
    runSumMs: milliseconds,
    runMaxMs: milliseconds,
    lateSumMs: milliseconds.openapi({ description: "Time from when jobs were due until they started." }),
    lateMaxMs: milliseconds,
    late: z.array(count).openapi({
      description: "How many started how late: one figure for each of lateBoundsMs, and one for later.",
    }),
    dueMax: count.openapi({
      description: "The most jobs that were due and waiting at once. 0 with by=name or a name.",
    }),
  })
  .openapi("HistoryPoint");

export const history = z
  .strictObject({
    points: z.array(historyPoint).openapi({
      description: "By time, then by queue or name. A step in which nothing happened has no point.",
    }),
    more: z.boolean().openapi({ description: "The limit cut off later points." }),
    lateBoundsMs: z.array(milliseconds).openapi({ description: "The upper bounds of late, inclusive." }),
  })
  .openapi("History");

export const auditPage = z
  .strictObject({
    entries: z.array(
      z
        .strictObject({
          id: z.string(),
          at: instant,
          actor: z.string(),
          action: z.string(),
          target: z.string(),
          reason: z.string().nullable(),
          outcome: z.unknown().openapi({
            description: "Null while it is in progress, or when the process was killed in the middle.",
          }),
        })
        .openapi("AuditEntry"),
    ),
    cursor: z.string().nullable(),
  })
  .openapi("AuditPage");

const rule = {
  cron: z.string().min(1).max(256).optional(),
  timezone: z.string().max(64).optional(),
  days: z.enum(["or", "and"]).optional(),
  gap: z.enum(["run-after", "skip"]).optional(),
  repeat: z.enum(["first", "both"]).optional(),
  misfire: z.enum(["once", "skip", "all"]).optional(),
  catchUp: z.int().optional(),
  overlap: z.enum(["allow", "skip", "queue-one", "replace"]).optional(),
  limit: z.int().optional(),
};

const spanOf = z.union([z.number(), z.string()]).optional();

const storedSpec = z
  .strictObject({
    ...rule,
    every: spanOf,
    at: instant.optional(),
    startAt: instant.optional(),
    endAt: instant.optional(),
    lookback: spanOf,
    jitter: spanOf,
  })
  .openapi("ScheduleSpec");

export const schedule = z
  .strictObject({
    key: z.string(),
    spec: storedSpec,
    name: z.string(),
    queue: z.string(),
    input: z.unknown(),
    priority: z.int(),
    tags: z.array(z.string()),
    expireInMs: z.number().nullable(),
    attempts: z.int(),
    paused: z.boolean(),
    nextAt: instant.nullable(),
    fired: count,
    lastJobId: z.string().nullable(),
    version: z.int(),
    createdAt: instant,
    updatedAt: instant,
    unreadable: z.string().optional(),
  })
  .openapi("Schedule");

const newSpec = z
  .strictObject({
    ...rule,
    every: duration.optional(),
    at: givenInstant.optional(),
    startAt: givenInstant.optional(),
    endAt: givenInstant.optional(),
    lookback: duration.optional(),
    jitter: duration.optional(),
  })
  .openapi("NewScheduleSpec");

export const newRule = z.strictObject({ spec: newSpec, reason: reason.optional() }).openapi("NewRule");

export const askedRule = z
  .strictObject({ spec: newSpec, count: z.int().min(1).max(100).optional() })
  .openapi("AskedRule");

export const rulePreview = z
  .strictObject({
    text: z.string().nullable().openapi({ description: "A cron expression in plain English." }),
    times: z.array(z.strictObject({ at: instant, note: z.string().nullable() })),
  })
  .openapi("RulePreview");

export const newSchedule = z
  .strictObject({
    spec: newSpec,
    job: name,
    input: z.unknown().optional(),
    priority: z.int().optional(),
    tags: z.array(name).max(100).optional(),
    expireIn: duration.optional(),
    attempts: z.int().optional(),
    reason: reason.optional(),
  })
  .openapi("NewSchedule");

export const scheduleOutcome = z
  .strictObject({ outcome: z.enum(["added", "changed", "unchanged", "kept"]) })
  .openapi("ScheduleOutcome");

export const occurrences = z
  .strictObject({
    occurrences: z.array(
      z
        .strictObject({
          key: z.string(),
          fireAt: instant,
          until: instant.nullable(),
          count,
          fate: z.enum(["skipped", "forgotten", ...jobStates]),
          reason: z.string().nullable(),
          jobId: z.string().nullable(),
          attempt: z.int().nullable(),
          plannedAt: instant,
          claimedAt: instant.nullable(),
          finishedAt: instant.nullable(),
          lateMs: z.number().nullable(),
          plannedBy: z.string(),
          node: z.string().nullable(),
        })
        .openapi("Occurrence"),
    ),
  })
  .openapi("Occurrences");

export const times = z.strictObject({ times: z.array(instant) }).openapi("Times");

export const span = z
  .strictObject({
    from: givenInstant,
    to: givenInstant,
    dryRun: z
      .boolean()
      .optional()
      .openapi({ description: "Plans nothing, and returns what would be planned." }),
    reason: reason.optional(),
  })
  .openapi("Span");

export const backfilled = z
  .strictObject({
    dryRun: z.boolean(),
    count: count.openapi({ description: "How many were planned, or would be." }),
    times: z.array(instant).openapi({ description: "The first of those that would be planned." }),
  })
  .openapi("Backfilled");
