import { z } from "@hono/zod-openapi";
import { deliveries, jobStates } from "../job.ts";
import { trailKinds } from "../store/questions.ts";
import { count, duration, filterBody, givenInstant, id, instant, name, orNull, reason } from "./words.ts";

/** Jobs as they travel. */

const state = z.enum(jobStates).openapi("JobState");
const delivery = z.enum(deliveries).openapi("Delivery");
const json = z.unknown().openapi({ description: "Any JSON." });

const error = z
  .strictObject({
    name: z.string(),
    message: z.string(),
    stack: z.string().optional(),
    code: z.string().optional(),
  })
  .openapi("ErrorRecord");

export const jobSummary = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    queue: z.string(),
    delivery,
    priority: z.int(),
    tags: z.array(z.string()),
    state,
    attempt: z.int(),
    attempts: z.int(),
    redrives: z.int(),
    runAt: instant,
    enqueuedAt: instant,
    claimedAt: instant.nullable(),
    finishedAt: instant.nullable(),
    claimer: z.string().nullable(),
    reason: z.string().nullable(),
    error: z.strictObject({ name: z.string(), message: z.string() }).nullable(),
  })
  .openapi("JobSummary");

export const jobsPage = z
  .strictObject({
    jobs: z.array(jobSummary),
    looked: count.openapi({ description: "How many jobs were searched for this page." }),
    cursor: z
      .string()
      .nullable()
      .openapi({ description: "Cursor of the next page; null at the end. A short page may have one." }),
  })
  .openapi("JobsPage");

const job = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    queue: z.string(),
    delivery,
    priority: z.int(),
    tags: z.array(z.string()),
    runAt: instant,
    fireAt: instant,
    enqueuedAt: instant,
    attempt: z.int(),
    attempts: z.int(),
    crashes: z.int(),
    maxCrashes: z.int(),
    redrives: z.int(),
    token: z.int(),
    schedule: z.string().nullable(),
    unreadable: z.array(z.string()).optional(),
    state,
    reason: z.string().nullable(),
    input: json,
    result: json,
    error: orNull(error),
    progress: json,
    expireAt: instant.nullable(),
    rollbacks: z.int(),
    relayed: z.boolean(),
    version: z.int(),
    claimer: z.string().nullable(),
    claimedAt: instant.nullable(),
    finishedAt: instant.nullable(),
    cancelRequested: z.boolean(),
    waitsFor: z.array(z.string()),
    concurrencyKey: z.string().nullable(),
    rateKey: z.string().nullable(),
    trace: z
      .strictObject({ traceparent: z.string(), tracestate: z.string().optional() })
      .optional()
      .openapi({ description: "The W3C Trace Context in which it was enqueued." }),
  })
  .openapi("Job");

const trailLine = z
  .strictObject({
    at: instant,
    kind: z.enum([...trailKinds, "noted"]),
    attempt: z.int(),
    token: z.int(),
    claimer: z.string().nullable(),
    text: z.string().nullable(),
    error: orNull(error),
  })
  .openapi("TrailLine");

const diagnosis = z
  .strictObject({
    id: z.string(),
    state,
    causes: z.array(
      z
        .looseObject({ code: z.string(), what: z.string(), advice: z.string().nullable() })
        .openapi({ description: "The other fields depend on the code." }),
    ),
  })
  .openapi("Diagnosis");

export const jobStory = z
  .strictObject({ job, trail: z.array(trailLine), diagnosis: orNull(diagnosis) })
  .openapi("JobStory");

export const children = z
  .strictObject({
    children: z.array(
      z
        .strictObject({ id: z.string(), name: z.string(), state, waitsFor: z.array(z.string()) })
        .openapi("ChildJob"),
    ),
    isPartial: z.boolean().openapi({ description: "Whether not all blocked jobs were searched." }),
  })
  .openapi("Children");

/** What a stream says of one job: all but what does not change. */
export const jobProgress = z
  .strictObject({
    id: z.string(),
    state,
    attempt: z.int(),
    attempts: z.int(),
    progress: json,
    reason: z.string().nullable(),
    error: orNull(error),
    finishedAt: instant.nullable(),
    cancelRequested: z.boolean(),
    trail: z.array(trailLine),
  })
  .openapi("JobProgress");

export const jobResult = z
  .strictObject({
    state,
    hasEnded: z.boolean(),
    result: json,
    error: orNull(error),
    reason: z.string().nullable(),
  })
  .openapi("JobResult");

export const newJob = z
  .strictObject({
    name,
    input: json.optional(),
    id: id.optional(),
    delay: duration.optional(),
    runAt: givenInstant.optional(),
    priority: z.int().optional(),
    tags: z.array(name).max(100).optional(),
    expireIn: duration.optional(),
    attempts: z.int().optional(),
    after: z.array(id).max(1_000).optional(),
    afterFailure: z.enum(["cancel", "run"]).optional(),
    reason: reason.optional(),
  })
  .openapi("NewJob");

export const receipt = z
  .strictObject({ id: z.string(), outcome: z.enum(["added", "existing", "absorbed", "debounced"]) })
  .openapi("Receipt");

export const jobChanges = z
  .strictObject({
    input: json.optional(),
    runAt: givenInstant.optional(),
    delay: duration.optional(),
    priority: z.int().optional(),
    reason: reason.optional(),
  })
  .openapi("JobChanges");

export const updateResult = z
  .strictObject({ outcome: z.enum(["updated", "refused", "unknown"]), state: orNull(state) })
  .openapi("UpdateResult");

export const changed = z
  .strictObject({
    outcome: z.enum(["cancelled", "requested", "terminal", "redriven", "held", "refused", "deleted"]),
  })
  .openapi("Changed");

export const why = z.strictObject({ reason: reason.optional() }).openapi("Why");

export const bulk = z
  .strictObject({
    filter: filterBody,
    dryRun: z.boolean().optional().openapi({ description: "Only counts, and changes nothing." }),
    reason: reason.optional(),
  })
  .openapi("Bulk");

export const bulkPriority = z
  .strictObject({
    filter: filterBody,
    priority: z.int(),
    dryRun: z.boolean().optional().openapi({ description: "Only counts, and changes nothing." }),
    reason: reason.optional(),
  })
  .openapi("BulkPriority");

export const bulkFailures = z
  .strictObject({
    name: name.optional(),
    state: z.enum(["dead", "lost"]).optional(),
    dryRun: z.boolean().optional(),
    reason: reason.optional(),
  })
  .openapi("BulkFailures");

export const task = z
  .strictObject({
    id: z.string(),
    action: z.enum(["cancel", "redrive", "delete", "run-now", "priority"]),
    dryRun: z.boolean(),
    actor: z.string(),
    startedAt: instant,
    state: z.enum(["running", "done", "stopped", "failed"]),
    looked: count,
    matched: count,
    changed: count.openapi({ description: "How many no longer matched when the task reached them." }),
    outcomes: z.record(z.string(), count),
    error: z.string().nullable(),
  })
  .openapi("Task");

export const failures = z
  .strictObject({
    groups: z.array(
      z
        .strictObject({
          fingerprint: z.string(),
          shape: z.string(),
          name: z.string(),
          state: z.enum(["dead", "lost"]),
          count,
          firstAt: instant,
          lastAt: instant,
          sampleId: z.string(),
          sample: z.string(),
          spark: z
            .array(count)
            .openapi({ description: "How many ended when: equal parts of the time from `from` to `to`." }),
        })
        .openapi("FailureGroup"),
    ),
    count,
    looked: count,
    isPartial: z.boolean(),
    from: instant.nullable().openapi({ description: "The first end among them; null without any." }),
    to: instant.nullable(),
  })
  .openapi("Failures");

export const countRow = z
  .strictObject({
    state: state.optional(),
    queue: z.string().optional(),
    name: z.string().optional(),
    count,
  })
  .openapi("CountRow");
