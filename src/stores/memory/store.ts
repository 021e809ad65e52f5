import type { Clock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import type {
  AcquireParams,
  CancelOutcome,
  Capabilities,
  CheckpointParams,
  CheckpointResult,
  ClaimParams,
  ClaimResult,
  CountParams,
  CountRow,
  DueSchedules,
  EnqueueParams,
  EnqueueResult,
  ExtendParams,
  ExtendResult,
  FinishParams,
  FinishResult,
  FireParams,
  FireResult,
  Health,
  ListParams,
  ListResult,
  NodeRecord,
  Notice,
  OccurrenceRecord,
  OccurrencesParams,
  PartitionDue,
  PartitionDueParams,
  PartitionGrant,
  PartitionHold,
  PartitionOutcome,
  PartitionTable,
  PendingMigration,
  PruneParams,
  PruneResult,
  PutScheduleParams,
  PutScheduleResult,
  QueueChange,
  QueueConfig,
  ReapParams,
  ReapResult,
  RedriveOutcome,
  RemoveOutcome,
  ReportParams,
  ScheduleRecord,
  SeenNode,
  SelectParams,
  SelectResult,
  StepParams,
  StepResult,
  Store,
  StoredJob,
  TrailEntry,
  TransactParams,
  TransactResult,
  UpdateParams,
  UpdateResult,
  Usage,
  UsageParams,
} from "../../store.ts";
import { cancel, redrive, remove, update } from "./change.ts";
import { claim } from "./claim.ts";
import { enqueue, enqueueAllOrNone } from "./enqueue.ts";
import { extend, finish, report } from "./finish.ts";
import { history, recordHistory } from "./history.ts";
import { audit, depths, note, record, scan } from "./operations.ts";
import {
  acquirePartitions,
  checkpoint,
  partitionDue,
  partitions,
  releasePartitions,
  renewPartitions,
} from "./partitions.ts";
import { configureQueue, nodes, putNode, queues } from "./queues.ts";
import { prune, reap } from "./reap.ts";
import { toStored } from "./row.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import { count, list } from "./select.ts";
import type { Moment, Space } from "./space.ts";
import { transact, transactionOf } from "./transaction.ts";
import { usage } from "./usage.ts";

/**
 * One handle on a namespace. Each verb is one synchronous piece of work, so that it is atomic by itself; the
 * verbs are in the files beside this one.
 */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities = {
    transactions: true,
    listen: false,
    timePrecisionMs: 1,
    durability: "none",
    acrossSlots: true,
  };
  readonly address = null;
  readonly #space: Space;
  readonly #clock: Clock;
  readonly #subscriptions = new Set<() => void>();
  #closed = false;

  constructor(space: Space, clock: Clock) {
    this.#space = space;
    this.#clock = clock;
  }

  async migrate(): Promise<void> {
    this.#assertOpen();
  }

  async pendingMigrations(): Promise<readonly PendingMigration[]> {
    return [];
  }

  async health(): Promise<Health> {
    return this.#verb(({ now }) => ({
      now: new Date(now),
      engine: "memory",
      schemaVersion: 1,
      details: { jobs: String(this.#space.jobs.size), durability: "none: everything ends with this process" },
      problems: [],
    }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const unsubscribe of this.#subscriptions) unsubscribe();
  }

  async enqueue({ jobs, tx, allOrNone }: EnqueueParams): Promise<EnqueueResult[]> {
    return this.#verb(({ now }) => {
      if (tx !== undefined) return transactionOf(this.#space, tx).stage(jobs, now);
      return (allOrNone ? enqueueAllOrNone : enqueue)(this.#space, jobs, now);
    });
  }

  async update(params: UpdateParams): Promise<UpdateResult> {
    return this.#verb(({ now }) => update(this.#space, params, now));
  }

  async cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>> {
    return this.#verb(({ now }) => cancel(this.#space, params, now));
  }

  async redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
    return this.#verb(({ now }) => redrive(this.#space, params, now));
  }

  async claim(params: ClaimParams): Promise<ClaimResult> {
    return this.#verb((moment) => claim(this.#space, params, moment));
  }

  async finish(params: FinishParams): Promise<FinishResult[]> {
    return this.#verb(({ now }) => finish(this.#space, params, now));
  }

  async step(params: StepParams): Promise<StepResult> {
    return this.#verb((moment) => {
      const { claimer } = params.claim;
      const finished = finish(this.#space, { claimer, finishes: params.finishes }, moment.now);
      return { finished, claimed: claim(this.#space, params.claim, moment) };
    });
  }

  async extend(params: ExtendParams): Promise<ExtendResult[]> {
    return this.#verb((moment) => extend(this.#space, params, moment));
  }

  async report(params: ReportParams): Promise<void> {
    this.#verb(({ now }) => report(this.#space, params, now));
  }

  async transact<T>(params: TransactParams<T>): Promise<TransactResult<T>> {
    this.#assertOpen();
    const result = await transact(this.#space, params, () => this.#clock.now());
    this.#space.notices.flush();
    return result;
  }

  async reap(params: ReapParams): Promise<ReapResult> {
    return this.#verb((moment) => reap(this.#space, params, moment));
  }

  async prune(params: PruneParams): Promise<PruneResult> {
    return this.#verb(({ now }) => prune(this.#space, params, now));
  }

  async remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
    return this.#verb(({ now }) => remove(this.#space, params, now));
  }

  async get({ ids }: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]> {
    return this.#verb(() =>
      ids.map((id) => {
        const row = this.#space.resolve(id);
        return row === undefined ? null : toStored(row);
      }),
    );
  }

  async list(params: ListParams): Promise<ListResult> {
    return this.#verb(() => list(this.#space, params));
  }

  async count(params: CountParams): Promise<CountRow[]> {
    return this.#verb(() => count(this.#space, params));
  }

  async trail({ id }: { readonly id: string }): Promise<TrailEntry[]> {
    return this.#verb(() =>
      (this.#space.resolve(id)?.trail ?? []).map((entry) => ({ ...entry, at: new Date(entry.at) })),
    );
  }

  readonly scan: Store["scan"] = async (params) => this.#verb(() => scan(this.#space, params));
  readonly depths: Store["depths"] = async () => this.#verb(({ now }) => depths(this.#space, now));
  readonly note: Store["note"] = async (params) => this.#verb(({ now }) => note(this.#space, params, now));
  readonly record: Store["record"] = async ({ entries }) =>
    this.#verb(({ now }) => record(this.#space, entries, now));
  readonly audit: Store["audit"] = async (params) => this.#verb(() => audit(this.#space, params));
  readonly recordHistory: Store["recordHistory"] = async (params) =>
    this.#verb(({ now }) => recordHistory(this.#space, params, now));
  readonly history: Store["history"] = async (params) => this.#verb(() => history(this.#space, params));

  async configureQueue(params: QueueChange): Promise<QueueConfig> {
    return this.#verb(() => configureQueue(this.#space, params));
  }

  async queues(): Promise<QueueConfig[]> {
    return this.#verb(() => queues(this.#space));
  }

  async usage(params: UsageParams): Promise<Usage> {
    return this.#verb(({ now }) => usage(this.#space, params, now));
  }

  async putNode(params: NodeRecord): Promise<void> {
    this.#verb(({ now }) => putNode(this.#space, params, now));
  }

  async removeNode({ id }: { readonly id: string }): Promise<void> {
    this.#verb(() => this.#space.nodes.delete(id));
  }

  async nodes(): Promise<SeenNode[]> {
    return this.#verb(({ now }) => nodes(this.#space, now));
  }

  async putSchedule(params: PutScheduleParams): Promise<PutScheduleResult> {
    return this.#verb(({ now }) => putSchedule(this.#space, params, now));
  }

  async removeSchedule({ key }: { readonly key: string }): Promise<boolean> {
    return this.#verb(() => removeSchedule(this.#space, key));
  }

  async schedules({ keys }: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]> {
    return this.#verb(() => schedules(this.#space, keys));
  }

  async dueSchedules({ limit }: { readonly limit: number }): Promise<DueSchedules> {
    return this.#verb(({ now }) => dueSchedules(this.#space, limit, now));
  }

  async fire(params: FireParams): Promise<FireResult[]> {
    return this.#verb(({ now }) => fire(this.#space, params, now));
  }

  async occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]> {
    return this.#verb(() => occurrences(this.#space, params));
  }

  async partitions(): Promise<PartitionTable> {
    return this.#verb((moment) => partitions(this.#space, moment));
  }

  async acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]> {
    return this.#verb((moment) => acquirePartitions(this.#space, params, moment));
  }

  async renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]> {
    return this.#verb((moment) => renewPartitions(this.#space, params, moment));
  }

  async releasePartitions(params: PartitionHold): Promise<void> {
    this.#verb(() => releasePartitions(this.#space, params));
  }

  async partitionDue(params: PartitionDueParams): Promise<PartitionDue> {
    return this.#verb(({ now }) => partitionDue(this.#space, params, now));
  }

  async checkpoint(params: CheckpointParams): Promise<CheckpointResult> {
    return this.#verb(({ now }) => checkpoint(this.#space, params, now));
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    this.#assertOpen();
    const subscriber = { clock: this.#clock, listener };
    const { subscribers } = this.#space.notices;
    const unsubscribe = (): void => void subscribers.delete(subscriber);
    subscribers.add(subscriber);
    this.#subscriptions.add(unsubscribe);
    return async () => unsubscribe();
  }

  #verb<T>(work: (moment: Moment) => T): T {
    this.#assertOpen();
    const result = work({ now: this.#clock.now(), monotonic: this.#clock.monotonic() });
    this.#space.notices.flush();
    return result;
  }

  #assertOpen(): void {
    if (this.#closed) throw new EscapementError("stopped", "the memory store was closed; open it again");
  }
}
