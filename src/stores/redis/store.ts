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
  StoreAddress,
  StoreContext,
  StoredJob,
  TrailEntry,
  TransactParams,
  TransactResult,
  UpdateParams,
  UpdateResult,
  Usage,
  UsageParams,
} from "../../store.ts";
import { cancel, prune, reap, redrive, remove, update } from "./change.ts";
import { Channel } from "./channel.ts";
import { claim, extend, finish, report, step } from "./claims.ts";
import type { RedisClient } from "./client.ts";
import { enqueue } from "./enqueue.ts";
import { durabilityOf, health, readFacts } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import type { Link } from "./link.ts";
import { isMade, migrate, missingNamespace, pendingMigrations } from "./migrate.ts";
import { audit, depths, note, pruneAudit, record, scan } from "./operations.ts";
import type { ResolvedOptions } from "./options.ts";
import {
  acquirePartitions,
  checkpoint,
  partitionDue,
  partitions,
  releasePartitions,
  renewPartitions,
} from "./partitions.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import { Space } from "./space.ts";
import { usage } from "./usage.ts";

interface RedisStoreParts {
  readonly link: Link;
  readonly options: ResolvedOptions;
  readonly context: StoreContext;
  readonly address: StoreAddress | null;
  newListener(): Promise<RedisClient>;
}

/** One handle on a namespace. Each verb is one script, which Redis runs alone; they are in lua/, their words in the files beside this one. */
export class RedisStore implements Store {
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  readonly #space: Space;
  readonly #channel: Channel;
  #isMade: boolean;

  static async open(parts: RedisStoreParts): Promise<RedisStore> {
    const { link, options, context } = parts;
    await link.open();
    const facts = await readFacts(link);
    const { prefix, slots, clock } = options;
    const space = new Space({ link, prefix, namespace: context.namespace, slots, clock });
    const { durability } = durabilityOf(link, facts);
    return new RedisStore(parts, space, durability, await isMade(space));
  }

  constructor(
    { link, options, context, address, newListener }: RedisStoreParts,
    space: Space,
    durability: Capabilities["durability"],
    made: boolean,
  ) {
    this.capabilities = {
      transactions: false,
      listen: true,
      timePrecisionMs: 1,
      durability,
      acrossSlots: options.slots === 1,
    };
    this.address = address;
    this.#space = space;
    this.#isMade = made;
    this.#channel = new Channel({
      link,
      channels: space.channels,
      callTimeoutMs: options.callTimeoutMs,
      log: context.log,
      newClient: newListener,
    });
  }

  async migrate(): Promise<void> {
    await migrate(this.#space);
    this.#isMade = true;
  }

  async pendingMigrations(): Promise<readonly PendingMigration[]> {
    return pendingMigrations(this.#space);
  }

  health(): Promise<Health> {
    return health(this.#space);
  }

  async close(): Promise<void> {
    this.#space.close();
    this.#channel.close();
    this.#space.link.close();
  }

  async enqueue({ jobs, tx, allOrNone = false }: EnqueueParams): Promise<EnqueueResult[]> {
    if (tx !== undefined) throw noTransactions();
    return enqueue(this.#made, jobs, allOrNone);
  }

  async transact<T>(_params: TransactParams<T>): Promise<TransactResult<T>> {
    throw noTransactions();
  }

  async update(params: UpdateParams): Promise<UpdateResult> {
    return update(this.#made, params);
  }

  async cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>> {
    return cancel(this.#made, params);
  }

  async redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
    return redrive(this.#made, params);
  }

  async claim(params: ClaimParams): Promise<ClaimResult> {
    return claim(this.#made, params);
  }

  async finish(params: FinishParams): Promise<FinishResult[]> {
    return finish(this.#made, params);
  }

  async step(params: StepParams): Promise<StepResult> {
    return step(this.#made, params);
  }

  async extend(params: ExtendParams): Promise<ExtendResult[]> {
    return extend(this.#made, params);
  }

  async report(params: ReportParams): Promise<void> {
    return report(this.#made, params);
  }

  async reap(params: ReapParams): Promise<ReapResult> {
    return reap(this.#made, params);
  }

  async prune(params: PruneParams): Promise<PruneResult> {
    const moreEntries = await pruneAudit(this.#made, params);
    const moreHistory = await pruneHistory(this.#made, params);
    const { pruned, more } = await prune(this.#made, params);
    return { pruned, more: more || moreEntries || moreHistory };
  }

  async remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
    return remove(this.#made, params);
  }

  async get({ ids }: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]> {
    return get(this.#made, ids);
  }

  async list(params: ListParams): Promise<ListResult> {
    return list(this.#made, params);
  }

  async count(params: CountParams): Promise<CountRow[]> {
    return count(this.#made, params);
  }

  async trail({ id }: { readonly id: string }): Promise<TrailEntry[]> {
    return trail(this.#made, id);
  }

  readonly scan: Store["scan"] = async (params) => scan(this.#made, params);
  readonly depths: Store["depths"] = async () => depths(this.#made);
  readonly note: Store["note"] = async (params) => note(this.#made, params);
  readonly record: Store["record"] = async (params) => record(this.#made, params.entries);
  readonly audit: Store["audit"] = async (params) => audit(this.#made, params);
  readonly recordHistory: Store["recordHistory"] = async (params) => recordHistory(this.#made, params);
  readonly history: Store["history"] = async (params) => history(this.#made, params);

  async configureQueue(params: QueueChange): Promise<QueueConfig> {
    return configureQueue(this.#made, params);
  }

  async queues(): Promise<QueueConfig[]> {
    return queues(this.#made);
  }

  async usage(params: UsageParams): Promise<Usage> {
    return usage(this.#made, params);
  }

  async putNode(params: NodeRecord): Promise<void> {
    return putNode(this.#made, params);
  }

  async removeNode({ id }: { readonly id: string }): Promise<void> {
    return removeNode(this.#made, id);
  }

  async nodes(): Promise<SeenNode[]> {
    return nodes(this.#made);
  }

  async putSchedule(params: PutScheduleParams): Promise<PutScheduleResult> {
    return putSchedule(this.#made, params);
  }

  async removeSchedule({ key }: { readonly key: string }): Promise<boolean> {
    return removeSchedule(this.#made, key);
  }

  async schedules({ keys }: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]> {
    return schedules(this.#made, keys);
  }

  async dueSchedules({ limit }: { readonly limit: number }): Promise<DueSchedules> {
    return dueSchedules(this.#made, limit);
  }

  async fire(params: FireParams): Promise<FireResult[]> {
    return fire(this.#made, params);
  }

  async occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]> {
    return occurrences(this.#made, params);
  }

  async partitions(): Promise<PartitionTable> {
    return partitions(this.#made);
  }

  async acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]> {
    return acquirePartitions(this.#made, params);
  }

  async renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]> {
    return renewPartitions(this.#made, params);
  }

  async releasePartitions(params: PartitionHold): Promise<void> {
    return releasePartitions(this.#made, params);
  }

  async partitionDue(params: PartitionDueParams): Promise<PartitionDue> {
    return partitionDue(this.#made, params);
  }

  async checkpoint(params: CheckpointParams): Promise<CheckpointResult> {
    return checkpoint(this.#made, params);
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    const unsubscribe = await this.#channel.subscribe(listener);
    return async () => unsubscribe();
  }

  get #made(): Space {
    if (!this.#isMade) throw missingNamespace(this.#space);
    return this.#space;
  }
}

function noTransactions(): EscapementError {
  return new EscapementError(
    "transaction-unavailable",
    "Redis has no transactions that a job could join; enqueue without tx, or use an SQL store",
  );
}
