import { allOrNone, assertNoneRefused } from "../../all-or-none.ts";
import { isCounted } from "../../kept-counts.ts";
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
import { update } from "./change.ts";
import { claim } from "./claim.ts";
import { type Connection, connectionOf } from "./connection.ts";
import { countOn, isBehind } from "./counts.ts";
import { depths } from "./depths.ts";
import type { Channel, Engine } from "./engine.ts";
import { enqueue } from "./enqueue.ts";
import { finish } from "./finish.ts";
import { health } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import {
  findIdentity,
  hasSchema,
  type Identity,
  identify,
  lookUpIdentity,
  missingSchema,
} from "./identity.ts";
import { extend, reap, report } from "./leases.ts";
import { bootId } from "./machine.ts";
import { migrate, pendingMigrations } from "./migrate.ts";
import { NoticeDraft } from "./notices.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
import { partitionDue } from "./partition-due.ts";
import { partitions } from "./partition-table.ts";
import { acquirePartitions, checkpoint, releasePartitions, renewPartitions } from "./partitions.ts";
import { prune } from "./prune.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { remove } from "./remove.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import { cancel, redrive } from "./select.ts";
import type { Session } from "./session.ts";
import { callersDatabase, transact, unwrapCaller, whenEnded } from "./transact.ts";
import { type Sharing, Transactions } from "./transactions.ts";
import { usage } from "./usage.ts";

interface SqliteStoreOptions {
  readonly engine: Engine;
  readonly context: StoreContext;
  readonly address: StoreAddress | null;
}

/** One handle on a namespace. Each verb is one synchronous piece of work in one transaction; they are in the files beside this one. */
export class SqliteStore implements Store {
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  readonly #engine: Engine;
  readonly #context: StoreContext;
  readonly #boot: string;
  readonly #channel: Channel;
  readonly #transactions: Transactions;
  readonly #subscriptions = new Set<() => void>();
  readonly #emptyClaims = new Map<string, number>();
  #identity: Identity | null = null;
  #hasSchema = false;

  /** Opens a handle. Where the schema is there already, it works without {@link migrate}. */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    const store = new SqliteStore(options);
    const { path } = options.engine;
    const { namespace } = options.context;
    const transactions = store.#transactions;
    store.#hasSchema = await transactions.read((connection) => hasSchema(connection, path));
    if (store.#hasSchema && options.context.mustExist === true) {
      store.#identity = await transactions.read((connection) =>
        lookUpIdentity(connection, namespace, store.#boot),
      );
    } else if (store.#hasSchema) {
      store.#identity =
        (await transactions.read((connection) => findIdentity(connection, namespace, store.#boot))) ??
        (await transactions.write((connection) => identify(connection, namespace, store.#boot)));
    }
    return store;
  }

  constructor({ engine, context, address }: SqliteStoreOptions) {
    this.capabilities = engine.capabilities;
    this.address = address;
    this.#engine = engine;
    this.#context = context;
    this.#boot = bootId(context.clock);
    this.#channel = engine.channel(context);
    this.#transactions = new Transactions({
      connection: engine.connection,
      clock: context.clock,
      path: engine.path,
      publish: (notices) => this.#channel.publish(notices),
    });
  }

  async migrate(): Promise<void> {
    // Nothing to do takes no write lock: the caller may hold it, with a transaction into which it is about to enqueue.
    if (this.#identity !== null && (await this.pendingMigrations()).length === 0) return;
    const { path } = this.#engine;
    const { namespace, clock } = this.#context;
    this.#identity = await this.#transactions.write((connection) => {
      migrate(connection, path, Math.trunc(clock.now()));
      return identify(connection, namespace, this.#boot);
    }, "alone");
    this.#hasSchema = true;
  }

  pendingMigrations(): Promise<readonly PendingMigration[]> {
    const now = Math.trunc(this.#context.clock.now());
    return this.#transactions.read((connection) => pendingMigrations(connection, now));
  }

  health(): Promise<Health> {
    if (this.#engine.isMissing) this.#missing();
    return this.#transactions.read(() => health(this.#engine, this.#context.clock));
  }

  async close(): Promise<void> {
    await this.#transactions.close();
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#channel.close();
    this.#engine.close();
  }

  async enqueue({ jobs, tx, allOrNone: isWhole }: EnqueueParams): Promise<EnqueueResult[]> {
    if (tx === undefined && isWhole) {
      return allOrNone(jobs, () => this.#write((session) => assertNoneRefused(enqueue(session, jobs))));
    }
    if (tx === undefined) return this.#write((session) => enqueue(session, jobs));
    const database = callersDatabase(tx, this.#engine.connection.database);
    const notices = new NoticeDraft();
    const results = enqueue(this.#session(connectionOf(database), notices), jobs);
    whenEnded(database, () => this.#channel.publish(notices.toNotices()));
    return results;
  }

  async update(params: UpdateParams): Promise<UpdateResult> {
    return this.#write((session) => update(session, params));
  }

  async cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>> {
    return this.#write((session) => cancel(session, params));
  }

  async redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
    return this.#write((session) => redrive(session, params));
  }

  async claim(params: ClaimParams): Promise<ClaimResult> {
    return this.#write((session) => claim(session, params));
  }

  async finish(params: FinishParams): Promise<FinishResult[]> {
    return this.#write((session) => finish(session, params));
  }

  async step(params: StepParams): Promise<StepResult> {
    const { claimer } = params.claim;
    return this.#write((session) => ({
      finished: finish(session, { claimer, finishes: params.finishes }),
      claimed: claim(session, params.claim),
    }));
  }

  async extend(params: ExtendParams): Promise<ExtendResult[]> {
    return this.#write((session) => extend(session, params));
  }

  async report(params: ReportParams): Promise<void> {
    return this.#write((session) => report(session, params));
  }

  async transact<T>(params: TransactParams<T>): Promise<TransactResult<T>> {
    return unwrapCaller(this.#write((session) => transact(session, params), "guarded"));
  }

  async reap(params: ReapParams): Promise<ReapResult> {
    return this.#write((session) => {
      countOn(session);
      return reap(session, params);
    });
  }

  async prune(params: PruneParams): Promise<PruneResult> {
    return this.#write((session) => {
      const moreEntries = pruneAudit(session, params);
      const moreHistory = pruneHistory(session, params);
      const { pruned, more } = prune(session, params);
      return { pruned, more: more || moreEntries || moreHistory };
    });
  }

  async remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
    return this.#write((session) => remove(session, params));
  }

  async get({ ids }: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]> {
    return this.#read((session) => get(session, ids));
  }

  async list(params: ListParams): Promise<ListResult> {
    return this.#read((session) => list(session, params));
  }

  async count(params: CountParams): Promise<CountRow[]> {
    if (isCounted(params.filter)) await this.#countOn();
    return this.#read((session) => count(session, params));
  }

  /** Counts new jobs for everybody. Where that cannot be written, whoever asks counts them again. */
  async #countOn(): Promise<void> {
    if (!(await this.#read(isBehind))) return;
    let more = true;
    while (more) more = await this.#write(countOn).catch(() => false);
  }

  async trail({ id }: { readonly id: string }): Promise<TrailEntry[]> {
    return this.#read((session) => trail(session, id));
  }

  readonly scan: Store["scan"] = async (params) => this.#read((session) => scan(session, params));
  readonly depths: Store["depths"] = async () => this.#read(depths);
  readonly note: Store["note"] = async (params) => this.#write((session) => note(session, params));
  readonly record: Store["record"] = async (params) =>
    this.#write((session) => record(session, params.entries));
  readonly audit: Store["audit"] = async (params) => this.#read((session) => audit(session, params));
  readonly recordHistory: Store["recordHistory"] = async (params) =>
    this.#write((session) => recordHistory(session, params));
  readonly history: Store["history"] = async (params) => this.#read((session) => history(session, params));

  async configureQueue(params: QueueChange): Promise<QueueConfig> {
    return this.#write((session) => configureQueue(session, params));
  }

  async queues(): Promise<QueueConfig[]> {
    return this.#read(queues);
  }

  async usage(params: UsageParams): Promise<Usage> {
    return this.#read((session) => usage(session, params));
  }

  async putNode(params: NodeRecord): Promise<void> {
    return this.#write((session) => putNode(session, params));
  }

  async removeNode({ id }: { readonly id: string }): Promise<void> {
    return this.#write((session) => removeNode(session, id));
  }

  async nodes(): Promise<SeenNode[]> {
    return this.#read(nodes);
  }

  async putSchedule(params: PutScheduleParams): Promise<PutScheduleResult> {
    return this.#write((session) => putSchedule(session, params));
  }

  async removeSchedule({ key }: { readonly key: string }): Promise<boolean> {
    return this.#write((session) => removeSchedule(session, key));
  }

  async schedules({ keys }: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]> {
    return this.#read((session) => schedules(session, keys));
  }

  async dueSchedules({ limit }: { readonly limit: number }): Promise<DueSchedules> {
    return this.#read((session) => dueSchedules(session, limit));
  }

  async fire(params: FireParams): Promise<FireResult[]> {
    return this.#write((session) => fire(session, params));
  }

  async occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]> {
    return this.#read((session) => occurrences(session, params));
  }

  async partitions(): Promise<PartitionTable> {
    return this.#read(partitions);
  }

  async acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]> {
    return this.#write((session) => acquirePartitions(session, params));
  }

  async renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]> {
    return this.#write((session) => renewPartitions(session, params));
  }

  async releasePartitions(params: PartitionHold): Promise<void> {
    return this.#write((session) => releasePartitions(session, params));
  }

  async partitionDue(params: PartitionDueParams): Promise<PartitionDue> {
    return this.#read((session) => partitionDue(session, params));
  }

  async checkpoint(params: CheckpointParams): Promise<CheckpointResult> {
    return this.#write((session) => checkpoint(session, params));
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    const unsubscribe = this.#channel.subscribe(listener);
    this.#subscriptions.add(unsubscribe);
    return async () => {
      this.#subscriptions.delete(unsubscribe);
      unsubscribe();
    };
  }

  #write<T>(work: (session: Session) => T, sharing?: Sharing): Promise<T> {
    return this.#transactions.write(
      (connection, notices) => work(this.#session(connection, notices)),
      sharing,
    );
  }

  #read<T>(work: (session: Session) => T): Promise<T> {
    return this.#transactions.read((connection) => work(this.#session(connection, new NoticeDraft())));
  }

  #missing(): never {
    const { isMissing, path } = this.#engine;
    return missingSchema(path, isMissing ? "file" : this.#hasSchema ? "namespace" : "schema");
  }

  #session(connection: Connection, notices: NoticeDraft): Session {
    const { clock } = this.#context;
    const identity = this.#identity ?? this.#missing();
    return {
      connection,
      ...identity,
      now: Math.trunc(clock.now()),
      monotonic: clock.monotonic(),
      emptyClaims: this.#emptyClaims,
      notices,
    };
  }
}
