/** What authors of stores need, as `escapement/store`: the contract, and the core's decisions that a store persists. */

export type { Clock } from "../clock.ts";
export {
  addFigures,
  type History,
  type HistoryEntry,
  type HistoryFigures,
  type HistoryParams,
  type HistoryPoint,
  type HistoryStep,
  historySteps,
  noFigures,
  type RecordHistoryParams,
  stepAt,
  stepMs,
} from "../history.ts";
export { slotOf } from "../id.ts";
export type { Delivery, JobFacts, JobOutline, JobState } from "../job.ts";
export type { Logger } from "../log.ts";
export {
  endedStates,
  follow,
  type HeldJob,
  isFragile,
  isPlainSuccess,
  isTerminal,
  type Outcome,
  type Settlement,
  type Success,
  settle,
  story,
  type Transition,
  transitions,
} from "../state.ts";
export { assertNoneRefused, outsideParents, RefusedBatch, refuseAll } from "./all-or-none.ts";
export type { AuditEntry, AuditFilter, AuditPage, AuditParams, NewAuditEntry, NoteParams } from "./audit.ts";
export { bind } from "./bind.ts";
export type {
  ClaimedJob,
  ClaimName,
  ClaimParams,
  ClaimRef,
  ClaimResult,
  EnqueueWithin,
  ExtendParams,
  ExtendResult,
  Finish,
  FinishParams,
  FinishResult,
  RateLimit,
  ReportParams,
  StepParams,
  StepResult,
  TransactParams,
  TransactResult,
} from "./claims.ts";
export type {
  CancelOutcome,
  EnqueueParams,
  EnqueueResult,
  NewJob,
  RedriveOutcome,
  RemoveOutcome,
  Retention,
  Selection,
  SelectParams,
  SelectResult,
  StoredJob,
  UpdateParams,
  UpdateResult,
} from "./jobs.ts";
export type { NodeRecord, SeenNode } from "./nodes.ts";
export type { Notice } from "./notices.ts";
export type {
  Capabilities,
  Health,
  PendingMigration,
  StoreAddress,
  StoreContext,
  StoreFactory,
} from "./opening.ts";
export {
  type AcquireParams,
  type CheckpointParams,
  type CheckpointResult,
  type DueJob,
  type DuePlace,
  longestLeaseMs,
  type PartitionDue,
  type PartitionDueParams,
  type PartitionGrant,
  type PartitionHold,
  type PartitionOutcome,
  type PartitionRecord,
  type PartitionRef,
  type PartitionTable,
  slotCount,
} from "./partitions.ts";
export {
  type CountBy,
  type CountParams,
  type CountRow,
  type Depths,
  errorHeadLength,
  type JobFilter,
  type JobSketch,
  type ListParams,
  type ListResult,
  maxTrailLength,
  type QueueDepth,
  type ScanFilter,
  type ScanParams,
  type ScanResult,
  type TrailEntry,
  type TrailKind,
  trailKinds,
} from "./questions.ts";
export type { QueueChange, QueueConfig } from "./queues.ts";
export type { PruneParams, PruneResult, ReapParams, ReapResult } from "./reaping.ts";
export type {
  DueSchedules,
  Fire,
  FireParams,
  FireResult,
  NewOccurrence,
  OccurrenceFate,
  OccurrenceRecord,
  OccurrencesParams,
  PutScheduleParams,
  PutScheduleResult,
  ScheduleRecord,
} from "./schedules.ts";
export type { Store } from "./store.ts";
