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
import { Turnstile } from "../../turnstile.ts";
import { callersRun } from "./caller.ts";
import { cancel, prune, redrive, remove, update } from "./change.ts";
import { claim, finish, step } from "./claim.ts";
import { ClaimedSeqs } from "./claimed-seqs.ts";
import { depths } from "./depths.ts";
import { enqueue, enqueueInside } from "./enqueue.ts";
import { health } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { extend, reap, report } from "./leases.ts";
import type { Link, Run } from "./link.ts";
import { findNamespace, migrate, missingSchema, pendingMigrations, quote, schemaVersion } from "./migrate.ts";
import { Channel } from "./notices.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
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
import type { Session } from "./session.ts";
import { type BoundParams, transact } from "./transact.ts";
import { TurnsVacuum } from "./turns-vacuum.ts";
import { usage } from "./usage.ts";

export interface PostgresStoreParts {
  readonly link: Link;
  readonly context: StoreContext;
  readonly schema: string;
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  /** The store's clock, where it is not the server's. */
  readonly clock: Clock | null;
  /** How many callers' transactions may hold a connection at the same time. */
  readonly transactions: number;
}

/** How long a migration may take, and wait for that of another node. */
const migrationMs = 120_000;

/** One handle on a namespace. Each verb is one statement, which calls a function of the schema; they are in the files beside this one. */
export class PostgresStore implements Store {
  readonly capabilities: Capabilities;
  readonly address: StoreAddress | null;
  readonly #parts: PostgresStoreParts;
  readonly #channel: Channel;
  readonly #turnstile: Turnstile;
  readonly #vacuum: TurnsVacuum;
  readonly #claimed = new ClaimedSeqs();
  #ns: number | null = null;

  /** Opens a handle. Where the schema is there already, it works without {@link migrate}. */
  static async open(parts: PostgresStoreParts): Promise<PostgresStore> {
    const store = new PostgresStore(parts);
    const { link, schema, context } = parts;
    const version = await schemaVersion(link.run, schema, link.place);
    if (version > 0) store.#ns = await findNamespace(link.run, schema, context.namespace);
    return store;
  }

  constructor(parts: PostgresStoreParts) {
    const { link, schema, context, capabilities } = parts;
    this.capabilities = capabilities;
    this.address = parts.address;
    this.#parts = parts;
    this.#channel = new Channel({ link, schema, listen: capabilities.listen, ...context });
    this.#turnstile = new Turnstile(parts.transactions);
    this.#vacuum = new TurnsVacuum(link, quote(schema), context.log);
  }

  async migrate(): Promise<void> {
    if (this.#ns !== null && (await this.pendingMigrations()).length === 0) return;
    const { link, schema, context } = this.#parts;
    this.#ns = await link.borrow((client) =>
      link.within(migrate(client, schema, context.namespace, link.place), "its migration", migrationMs),
    );
  }

  pendingMigrations(): Promise<readonly PendingMigration[]> {
    const { link, schema } = this.#parts;
    return pendingMigrations(link.run, schema, link.place);
  }

  async health(): Promise<Health> {
    const { link, schema, context } = this.#parts;
    const version = await schemaVersion(link.run, schema, link.place);
    const parts = { run: link.run, schema: quote(schema), now: this.#now() };
    return health(parts, schema, version, () => context.clock.now());
  }

  async close(): Promise<void> {
    await this.#channel.close();
    await this.#parts.link.close();
  }

  async enqueue({ jobs, tx, allOrNone = false }: EnqueueParams): Promise<EnqueueResult[]> {
    if (tx === undefined) return enqueue(this.#session(), jobs, allOrNone);
    // Nothing may be awaited before the statement is handed over: the caller's next one must come after it.
    const { name: channel } = this.#channel;
    return enqueueInside(this.#session(callersRun(tx)), jobs, {
      channel,
      payload: (news) => this.#channel.payload(news.toNotices(), false),
    });
  }

  async update(params: UpdateParams): Promise<UpdateResult> {
    return update(this.#session(), params);
  }

  async cancel(params: SelectParams): Promise<SelectResult<CancelOutcome>> {
    return cancel(this.#session(), params);
  }

  async redrive(params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
    return redrive(this.#session(), params);
  }

  async claim(params: ClaimParams): Promise<ClaimResult> {
    const claimed = await claim(this.#session(), params);
    this.#vacuum.claimed(claimed.jobs.length);
    return claimed;
  }

  async finish(params: FinishParams): Promise<FinishResult[]> {
    return finish(this.#session(), params);
  }

  async step(params: StepParams): Promise<StepResult> {
    const result = await step(this.#session(), params);
    this.#vacuum.claimed(result.claimed.jobs.length);
    return result;
  }

  async extend(params: ExtendParams): Promise<ExtendResult[]> {
    return extend(this.#session(), params);
  }

  async report(params: ReportParams): Promise<void> {
    return report(this.#session(), params);
  }

  async transact<T>(params: TransactParams<T>): Promise<TransactResult<T>> {
    const session = this.#session();
    return this.#turnstile.pass(() => transact(session, this.#parts.link, this.#enqueuing(params)));
  }

  /** The function of a transaction may enqueue in it. */
  #enqueuing<T>(params: TransactParams<T>): BoundParams<T> {
    return { ...params, run: (tx) => params.run(tx, (jobs) => this.enqueue({ jobs, tx })) };
  }

  async reap(params: ReapParams): Promise<ReapResult> {
    return reap(this.#session(), params);
  }

  async prune(params: PruneParams): Promise<PruneResult> {
    const moreEntries = await pruneAudit(this.#session(), params);
    const moreHistory = await pruneHistory(this.#session(), params);
    const { pruned, more } = await prune(this.#session(), params);
    return { pruned, more: more || moreEntries || moreHistory };
  }

  async remove(params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
    return remove(this.#session(), params);
  }

  async get({ ids }: { readonly ids: readonly string[] }): Promise<(StoredJob | null)[]> {
    return get(this.#session(), ids);
  }

  async list(params: ListParams): Promise<ListResult> {
    return list(this.#session(), params);
  }

  async count(params: CountParams): Promise<CountRow[]> {
    return count(this.#session(), params);
  }

  async trail({ id }: { readonly id: string }): Promise<TrailEntry[]> {
    return trail(this.#session(), id);
  }

  readonly scan: Store["scan"] = async (params) => scan(this.#session(), params);
  readonly depths: Store["depths"] = async () => depths(this.#session());
  readonly note: Store["note"] = async (params) => note(this.#session(), params);
  readonly record: Store["record"] = async (params) => record(this.#session(), params.entries);
  readonly audit: Store["audit"] = async (params) => audit(this.#session(), params);
  readonly recordHistory: Store["recordHistory"] = async (params) => recordHistory(this.#session(), params);
  readonly history: Store["history"] = async (params) => history(this.#session(), params);

  async configureQueue(params: QueueChange): Promise<QueueConfig> {
    return configureQueue(this.#session(), params);
  }

  async queues(): Promise<QueueConfig[]> {
    return queues(this.#session());
  }

  async usage(params: UsageParams): Promise<Usage> {
    return usage(this.#session(), params);
  }

  async putNode(params: NodeRecord): Promise<void> {
    return putNode(this.#session(), params);
  }

  async removeNode({ id }: { readonly id: string }): Promise<void> {
    return removeNode(this.#session(), id);
  }

  async nodes(): Promise<SeenNode[]> {
    return nodes(this.#session());
  }

  async putSchedule(params: PutScheduleParams): Promise<PutScheduleResult> {
    return putSchedule(this.#session(), params);
  }

  async removeSchedule({ key }: { readonly key: string }): Promise<boolean> {
    return removeSchedule(this.#session(), key);
  }

  async schedules({ keys }: { readonly keys: readonly string[] | null }): Promise<ScheduleRecord[]> {
    return schedules(this.#session(), keys);
  }

  async dueSchedules({ limit }: { readonly limit: number }): Promise<DueSchedules> {
    return dueSchedules(this.#session(), limit);
  }

  async fire(params: FireParams): Promise<FireResult[]> {
    return fire(this.#session(), params);
  }

  async occurrences(params: OccurrencesParams): Promise<OccurrenceRecord[]> {
    return occurrences(this.#session(), params);
  }

  async partitions(): Promise<PartitionTable> {
    return partitions(this.#session());
  }

  async acquirePartitions(params: AcquireParams): Promise<PartitionGrant[]> {
    return acquirePartitions(this.#session(), params);
  }

  async renewPartitions(params: PartitionHold & { readonly leaseMs: number }): Promise<PartitionOutcome[]> {
    return renewPartitions(this.#session(), params);
  }

  async releasePartitions(params: PartitionHold): Promise<void> {
    return releasePartitions(this.#session(), params);
  }

  async partitionDue(params: PartitionDueParams): Promise<PartitionDue> {
    return partitionDue(this.#session(), params);
  }

  async checkpoint(params: CheckpointParams): Promise<CheckpointResult> {
    return checkpoint(this.#session(), params);
  }

  subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>> {
    return this.#channel.subscribe(listener);
  }

  #session(run: Run = this.#parts.link.run): Session {
    const { link, schema } = this.#parts;
    return {
      run,
      schema: quote(schema),
      ns: this.#ns ?? missingSchema(link.place, schema),
      now: this.#now(),
      claimed: this.#claimed,
      publish: (notices) => this.#channel.publish(notices),
    };
  }

  #now(): number | null {
    const { clock } = this.#parts;
    return clock === null ? null : Math.trunc(clock.now());
  }
}
