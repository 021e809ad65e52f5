export type { BackfillOptions } from "./app/backfill.ts";
export { createEscapement } from "./app/create.ts";
export { Escapement } from "./app/escapement.ts";
export type { Role, StartOptions } from "./app/node.ts";
export type { Occurrence } from "./app/occurrences.ts";
export type { Schedule } from "./app/schedule.ts";
export type { OccurrencesOptions, ScheduleOptions, ScheduleOutcome } from "./app/schedules.ts";
export type { Left as TickLeft, Ticked } from "./app/tick.ts";
export type { ReasonOptions, StopOptions } from "./app/verb-options.ts";
export type { AppHealth, JobChanges, ListOptions, QueueOptions, ResultOptions } from "./client/client.ts";
export type { TrailLine } from "./client/decode.ts";
export type { SubscribeOptions } from "./client/endings.ts";
export type { HistoryOptions } from "./client/history.ts";
export type { Tally, Target } from "./client/select.ts";
export type { JobUpdate, WatchOptions } from "./client/watch.ts";
export { explainCron } from "./cron/explain.ts";
export { type CronFields, parseCron } from "./cron/fields.ts";
export { type FireSpec, type NextFireTimesOptions, nextFireTimes } from "./cron/spec.ts";
export {
  type AnyDefinition,
  type BackoffOptions,
  type DefinitionOptions,
  defineJob,
  type Handler,
  type JobDefinition,
} from "./definition.ts";
export type { Cause, CauseCode, CauseFields, SilentNode } from "./diagnosis/cause.ts";
export type { Diagnosis } from "./diagnosis/diagnosis.ts";
export type { Duration } from "./duration.ts";
export type {
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueVerbs,
  HandlerJobs,
  InputOf,
  ManyItem,
  MixedItem,
  ResultOf,
  TransactionJobs,
} from "./enqueue.ts";
export { type ErrorCode, type ErrorRecord, EscapementError, UnrecoverableError } from "./errors.ts";
export type { AppEventName, AppEvents, AppListener, DispatchPhase, Timing } from "./events.ts";
export {
  type HandlerContext,
  type HandlerJob,
  Snooze,
  type StopCause,
  StopReason,
  snooze,
} from "./handler.ts";
export {
  type History,
  type HistoryFigures,
  type HistoryPoint,
  type HistoryStep,
  lateBoundsMs,
} from "./history.ts";
export { type IdempotencySource, idempotencyKey } from "./idempotency.ts";
export type { Delivery, Job, JobFacts, JobOutline, JobState } from "./job.ts";
export type { Jsonified, JsonSafe, NotJson } from "./json.ts";
export type { Logger } from "./log.ts";
export type { Message, MessageFacts } from "./message/message.ts";
export type {
  PublishOptions,
  PublishResult,
  Route,
  Transport,
  TransportContext,
  TransportFactory,
} from "./message/transport.ts";
export type { Act } from "./operations/act.ts";
export type { AuditLogEntry, AuditLogFilter, AuditLogPage } from "./operations/audit-log.ts";
export type { BackfillPreview } from "./operations/backfill-preview.ts";
export type { BulkProgress, BulkTask } from "./operations/bulk-task.ts";
export type { FailureGroup, Failures } from "./operations/failures.ts";
export type { JobSummary, JobsFilter, JobsOptions, JobsPage } from "./operations/find-jobs.ts";
export {
  type BulkOptions,
  type JobStory,
  Operations,
  type Overview,
  type ScheduleTemplate,
} from "./operations/operations.ts";
export type { QueueView } from "./operations/queue-views.ts";
export type { Misfire, Overlap, ScheduleSpec } from "./planner/schedule-spec.ts";
export type { EnqueueReceipt, JobRef } from "./receipt.ts";
export type { JobRetentionOptions } from "./retention.ts";
export type {
  EscapementOptions,
  MetricsOptions,
  MetricsRegistry,
  RelayOptions,
  RetentionOptions,
  ScheduleConflict,
} from "./settings.ts";
export type { RateLimit } from "./store/claims.ts";
export type { CancelOutcome, RedriveOutcome, RemoveOutcome, Retention, UpdateResult } from "./store/jobs.ts";
export type { NodeRecord, SeenNode } from "./store/nodes.ts";
export type { Capabilities, Health, PendingMigration, StoreFactory } from "./store/opening.ts";
export type { PartitionRecord, PartitionRef, PartitionTable } from "./store/partitions.ts";
export type { CountBy, CountRow, JobFilter, QueueDepth, ScanFilter, TrailKind } from "./store/questions.ts";
export type { QueueConfig } from "./store/queues.ts";
export type { OccurrenceFate } from "./store/schedules.ts";
export type { Counting, Instruments, Labels, Measuring, Reading } from "./telemetry/instruments.ts";
export type { Middleware } from "./telemetry/middleware.ts";
export type { Probe, ProbeCheck } from "./telemetry/probe.ts";
export type { Enqueuing, Leg, Planning, Publishing, Telemetry } from "./telemetry/telemetry.ts";
export type { TraceContext } from "./telemetry/trace.ts";
