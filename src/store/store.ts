/**
 * THE contract. Every store implements these verbs, each atomic and batch-first. The files beside this one hold them by
 * subject. The conformance suite in `escapement/testing` tests what the comments say, and the `memory` store is the
 * executable specification.
 *
 * Rules that hold for every verb:
 * - The store's clock decides. Callers pass spans (`delayMs`, `leaseMs`); the store turns them into instants.
 * - A verb that rejects has changed nothing, or its reply was lost. Every verb may be repeated after that.
 * - Outcomes are results: a stale token, an unknown id or a job in the wrong state never rejects.
 * - Answers are in the order of the questions. A batch runs in its order: each entry sees what the ones before it did.
 */
import type { AuditVerbs } from "./audit.ts";
import type { ClaimVerbs } from "./claims.ts";
import type { HistoryVerbs } from "./history.ts";
import type { JobVerbs } from "./jobs.ts";
import type { NodeVerbs } from "./nodes.ts";
import type { NoticeVerbs } from "./notices.ts";
import type { Capabilities, Health, PendingMigration, StoreAddress } from "./opening.ts";
import type { PartitionVerbs } from "./partitions.ts";
import type { QuestionVerbs } from "./questions.ts";
import type { QueueVerbs } from "./queues.ts";
import type { ReapingVerbs } from "./reaping.ts";
import type { ScheduleVerbs } from "./schedules.ts";

/** Every verb of a store, without what belongs to the open handle itself. */
export interface StoreVerbs
  extends JobVerbs,
    ClaimVerbs,
    ReapingVerbs,
    QuestionVerbs,
    AuditVerbs,
    HistoryVerbs,
    QueueVerbs,
    NodeVerbs,
    ScheduleVerbs,
    PartitionVerbs {}

/** An open handle on one namespace of a store. */
export interface Store extends StoreVerbs, NoticeVerbs {
  readonly capabilities: Capabilities;
  /** How a separate thread reaches the same data; null if only this object can. */
  readonly address: StoreAddress | null;

  /** Creates or upgrades the schema under a lock. Refuses a breaking schema that is newer than this library. */
  migrate(): Promise<void>;

  /**
   * What `migrate` would run now, for teams that run it by hand and for `migrate --dry-run`. Empty when the schema is
   * current.
   */
  pendingMigrations(): Promise<readonly PendingMigration[]>;

  /** The store's clock, its engine, and what is wrong with it. */
  health(): Promise<Health>;

  /** Ends every connection. Calls in progress may reject. */
  close(): Promise<void>;
}
