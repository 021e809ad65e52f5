import { allOrNone, assertNoneRefused } from "../../all-or-none.ts";
import type { Clock } from "../../clock.ts";
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
  NewJob,
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
import { enqueueInBulk } from "./bulk.ts";
import { update } from "./change.ts";
import { claim } from "./claim.ts";
import { foldCounts } from "./counts.ts";
import { depths } from "./depths.ts";
import { enqueue } from "./enqueue.ts";
import { finish } from "./finish.ts";
import { health } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { isIndependent, newTag } from "./insert.ts";
import { extend, reap, report } from "./leases.ts";
import { pendingMigrations } from "./migrate.ts";
import { nodes, putNode, removeNode } from "./nodes.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
import { partitionDue } from "./partition-due.ts";
import { partitions } from "./partition-table.ts";
import { acquirePartitions, checkpoint, releasePartitions, renewPartitions } from "./partitions.ts";
import type { Connections } from "./pool.ts";
import { prune } from "./prune.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, queues } from "./queues.ts";
import { remove } from "./remove.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import { cancel, redrive } from "./select.ts";
import { Space } from "./space.ts";
import { maySwift, swiftFinish, swiftStep } from "./swift.ts";
import { maySwiftCheckpoint, swiftCheckpoint } from "./swift-checkpoint.ts";
import type { BoundParams } from "./transact.ts";
import { usage } from "./usage.ts";

export interface MysqlStoreOptions {
  readonly connections: Connections;
  readonly tablePrefix: string;
  readonly context: StoreContext;
  /** The store's clock where it is not the server's. */
  readonly clock: Clock | null;
  readonly skipLocked: boolean | null;
  readonly address: StoreAddress | null;
}

/** One handle on a namespace. The verbs are in the files beside this one; how they are run is in `space.ts`. */
export class MysqlStore implements Store {
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  readonly #space: Space;

  /** Opens a handle. Where the schema is there already, it works without {@link migrate}. */
  static async open(options: MysqlStoreOptions): Promise<MysqlStore> {
    const space = new Space(options);
    const durability = await space.open();
    return new MysqlStore(space, options.address, durability);
  }

  constructor(space: Space, address: StoreAddress | null, durability: "full" | "weak") {
    this.#space = space;
    this.address = address;
    this.capabilities = {
      transactions: true,
      listen: space.listens,
      timePrecisionMs: 1,
      durability,
      acrossSlots: true,
    };
  }

  migrate(): Promise<void> {
    return this.#space.migrate();
  }

  pendingMigrations(): Promise<readonly PendingMigration[]> {
    return this.#space.ask(({ link }) => pendingMigrations(link));
  }

  health(): Promise<Health> {
    return this.#space.ask((session) => health(session, this.#space.where));
  }

  close(): Promise<void> {
    return this.#space.close();
  }

  async enqueue({ jobs, tx, allOrNone: isWhole }: EnqueueParams): Promise<EnqueueResult[]> {
    const tag = newTag();
    if (tx !== undefined) {
      return this.#space.enqueueWithin(tx, jobs, (session) => enqueue(session, jobs, tag));
    }
    await this.#space.prepareLines(jobs);
    if (jobs.every(isIndependent)) {
      // A connection of a caller's pool does not tell how many jobs it added.
      return this.#space.write(
        (session) =>
          session.link.countsChanges ? enqueueInBulk(session, jobs, tag) : enqueue(session, jobs, tag),
        false,
      );
    }
    if (!isWhole) return this.#space.write((session) => enqueue(session, jobs, tag));
    return allOrNone(jobs, () =>
      this.#space.write(async (session) => assertNoneRefused(await enqueue(session, jobs, tag))),
    );
  }

  async update(params: UpdateParams): Promise<UpdateResult> {
    return this.#space.write((session) => update(session, params));
  }

  async cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>> {
    return this.#space.write((session) => cancel(session, params));
  }

  async redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
    return this.#space.write((session) => redrive(session, params));
  }

  async claim(params: ClaimParams): Promise<ClaimResult> {
    return (await this.step({ finishes: [], claim: params })).claimed;
  }

  async finish(params: FinishParams): Promise<FinishResult[]> {
    const { claimer, finishes } = params;
    await this.#space.prepareClaimer(claimer);
    if (maySwift(await this.#space.known(), finishes, null)) {
      const swift = await this.#space.write((session) => swiftFinish(session, claimer, finishes));
      if (swift !== null) return swift;
    }
    return this.#space.write((session) => finish(session, params));
  }

  async step({ finishes, claim: params }: StepParams): Promise<StepResult> {
    const { claimer } = params;
    await this.#space.prepareClaimer(claimer);
    await this.#space.jitter();
    if (maySwift(await this.#space.known(), finishes, params)) {
      const swift = await this.#space.write((session) => swiftStep(session, finishes, params));
      if (swift !== null) return swift;
    }
    return this.#space.write(async (session) => {
      const finished = await finish(session, { claimer, finishes });
      return { finished, claimed: await claim(session, params) };
    });
  }

  async extend(params: ExtendParams): Promise<ExtendResult[]> {
    await this.#space.prepareClaimer(params.claimer);
    return this.#space.write((session) => extend(session, params));
  }

  async report(params: ReportParams): Promise<void> {
    await this.#space.prepareClaimer(params.claimer);
    return this.#space.write((session) => report(session, params));
  }

  async transact<T>(params: TransactParams<T>): Promise<TransactResult<T>> {
    await this.#space.prepareClaimer(params.claimer);
    return this.#space.transact(this.#enqueuing(params));
  }

  /** The function of a transaction may enqueue in it. */
  #enqueuing<T>(params: TransactParams<T>): BoundParams<T> {
    return { ...params, run: (tx) => params.run(tx, (jobs) => this.enqueue({ jobs, tx })) };
  }

  async reap(params: ReapParams): Promise<ReapResult> {
    const result = await this.#space.write((session) => reap(session, params));
    const moreCounts = await this.#space.write(foldCounts);
    return { ...result, more: result.more || moreCounts };
  }

  async prune(params: PruneParams): Promise<PruneResult> {
    const moreEntries = await this.#space.write((session) => pruneAudit(session, params));
    const moreHistory = await this.#space.write((session) => pruneHistory(session, params));
    const { pruned, more } = await this.#space.write((session) => prune(session, params));
    return { pruned, more: more || moreEntries || moreHistory };
  }

  async remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
    return this.#space.write((session) => remove(session, params));
  }

  async get({ ids }: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]> {
    return this.#space.read((session) => get(session, ids));
  }

  async list(params: ListParams): Promise<ListResult> {
    return this.#space.read((session) => list(session, params));
  }

  async count(params: CountParams): Promise<CountRow[]> {
    return this.#space.read((session) => count(session, params));
  }

  async trail({ id }: { readonly id: string }): Promise<TrailEntry[]> {
    return this.#space.read((session) => trail(session, id));
  }

  readonly scan: Store["scan"] = async (params) => this.#space.read((session) => scan(session, params));
  readonly depths: Store["depths"] = async () => this.#space.read(depths);
  readonly note: Store["note"] = async (params) => this.#space.write((session) => note(session, params));
  readonly record: Store["record"] = async (params) =>
    this.#space.write((session) => record(session, params.entries));
  readonly audit: Store["audit"] = async (params) => this.#space.read((session) => audit(session, params));
  readonly recordHistory: Store["recordHistory"] = (params) =>
    this.#space.write((session) => recordHistory(session, params));
  readonly history: Store["history"] = (params) => this.#space.read((session) => history(session, params));

  async configureQueue(params: QueueChange): Promise<QueueConfig> {
    return this.#space.write((session) => configureQueue(session, params));
  }

  async queues(): Promise<QueueConfig[]> {
    return this.#space.read(queues);
  }

  async usage(params: UsageParams): Promise<Usage> {
    return this.#space.read((session) => usage(session, params));
  }

  async putNode(params: NodeRecord): Promise<void> {
    return this.#space.write((session) => putNode(session, params));
  }

  async removeNode({ id }: { readonly id: string }): Promise<void> {
    return this.#space.write((session) => removeNode(session, id));
  }

  async nodes(): Promise<SeenNode[]> {
    return this.#space.read(nodes);
  }

  async putSchedule(params: PutScheduleParams): Promise<PutScheduleResult> {
    await this.#space.prepareLines(jobsOf(params.skipped));
    return this.#space.write((session) => putSchedule(session, params));
  }

  async removeSchedule({ key }: { readonly key: string }): Promise<boolean> {
    return this.#space.write((session) => removeSchedule(session, key));
  }

  async schedules({ keys }: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]> {
    return this.#space.read((session) => schedules(session, keys));
  }

  async dueSchedules({ limit }: { readonly limit: number }): Promise<DueSchedules> {
    return this.#space.read((session) => dueSchedules(session, limit));
  }

  async fire(params: FireParams): Promise<FireResult[]> {
    await this.#space.prepareLines(params.fires.flatMap((one) => jobsOf(one.occurrences)));
    return this.#space.write((session) => fire(session, params));
  }

  async occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]> {
    return this.#space.read((session) => occurrences(session, params));
  }

  async partitions(): Promise<PartitionTable> {
    return this.#space.read(partitions);
  }

  async acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]> {
    await this.#space.prepareClaimer(params.owner);
    return this.#space.write((session) => acquirePartitions(session, params));
  }

  async renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]> {
    return this.#space.write((session) => renewPartitions(session, params));
  }

  async releasePartitions(params: PartitionHold): Promise<void> {
    return this.#space.write((session) => releasePartitions(session, params));
  }

  async partitionDue(params: PartitionDueParams): Promise<PartitionDue> {
    return this.#space.read((session) => partitionDue(session, params));
  }

  async checkpoint(params: CheckpointParams): Promise<CheckpointResult> {
    await this.#space.prepareClaimer(params.owner);
    if (maySwiftCheckpoint(await this.#space.known(), params)) {
      const swift = await this.#space.write((session) => swiftCheckpoint(session, params));
      if (swift !== null) return swift;
    }
    return this.#space.write((session) => checkpoint(session, params));
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    return this.#space.subscribe(listener);
  }
}

function jobsOf(occurrences: readonly { readonly job: NewJob | null }[]): NewJob[] {
  return occurrences.flatMap(({ job }) => job ?? []);
}
