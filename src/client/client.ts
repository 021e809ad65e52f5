import type { AnyDefinition } from "../definition.ts";
import { checkPriority } from "../definition.ts";
import { type Diagnosis, diagnose, summaryOf } from "../diagnosis/diagnosis.ts";
import { type Duration, parseDuration } from "../duration.ts";
import type { EnqueueManyOptions, EnqueueOptions } from "../enqueue.ts";
import { describe, EscapementError } from "../errors.ts";
import { withoutRawNumbers } from "../exact-json.ts";
import type { History } from "../history.ts";
import type { Job } from "../job.ts";
import { checkName } from "../names.ts";
import { checkBoolean, checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { type EnqueueReceipt, idOf, type JobRef } from "../receipt.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { withRetries } from "../runtime/transient.ts";
import { validate } from "../schema.ts";
import type { Settings } from "../settings.ts";
import type { AuditPage, AuditParams, NewAuditEntry, NoteParams } from "../store/audit.ts";
import type { EnqueueWithin } from "../store/claims.ts";
import type {
  CancelOutcome,
  EnqueueResult,
  NewJob,
  RedriveOutcome,
  RemoveOutcome,
  UpdateResult,
} from "../store/jobs.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { Capabilities, Health, PendingMigration } from "../store/opening.ts";
import type { PartitionTable } from "../store/partitions.ts";
import type { CountBy, CountRow, Depths, JobFilter, ScanParams, ScanResult } from "../store/questions.ts";
import type { QueueConfig } from "../store/queues.ts";
import type { Store } from "../store/store.ts";
import { EnqueueBatcher, receive } from "./batcher.ts";
import type { Connection } from "./connection.ts";
import { decodeJob, decodeTrail, type TrailLine } from "./decode.ts";
import { checkFilter, checkScanFilter } from "./filter.ts";
import { type HistoryOptions, historyParams } from "./history.ts";
import { type Asked, type AskedMany, asRefused, checkOneTrip, writeMany } from "./many.ts";
import { encodeInput, limitKeys, makeJob } from "./new-job.ts";
import { waitForResult } from "./result.ts";
import { runOver, type Tally, type Target } from "./select.ts";
import { TransactionEnqueuer, type TransactionJobsParts } from "./transaction-jobs.ts";

export interface ResultOptions {
  /** How long to wait; `Infinity` for as long as it takes. The default outlasts the first retries of a job. @default "5m" */
  readonly timeout?: Duration;
}

export interface JobChanges<Input = unknown> {
  readonly input?: Input;
  readonly runAt?: Date;
  readonly delay?: Duration;
  readonly priority?: number;
}

export interface QueueOptions {
  /** Active jobs across all nodes; null removes the limit. */
  readonly concurrency?: number | null;
  /** Starts per window across all nodes; null removes the limit. */
  readonly rate?: { readonly limit: number; readonly per: Duration } | null;
}

export interface ListOptions {
  /** @default 50 */
  readonly limit?: number;
  /** @default "newest" */
  readonly order?: "newest" | "oldest";
  /** From the previous page. */
  readonly cursor?: string | null;
}

/** What can be done to all jobs that match. */
export type ChangeVerb = "cancel" | "redrive" | "remove";

/** The state of the store, and what it can do. */
export interface AppHealth extends Health {
  readonly capabilities: Capabilities;
}

/** The calling side: everything an application, a CLI or a screen wants to query or change. It runs no loops. */
export class Client {
  readonly #connection: Connection;
  readonly #definitions: ReadonlyMap<string, AnyDefinition>;
  readonly #settings: Settings;
  readonly #runtime: Runtime;
  readonly #batcher: EnqueueBatcher;

  constructor(
    connection: Connection,
    definitions: ReadonlyMap<string, AnyDefinition>,
    settings: Settings,
    runtime: Runtime,
  ) {
    this.#connection = connection;
    this.#definitions = definitions;
    this.#settings = settings;
    this.#runtime = runtime;
    this.#batcher = new EnqueueBatcher(connection.store, runtime);
  }

  async enqueue(
    target: AnyDefinition | string,
    input: unknown,
    options: EnqueueOptions,
  ): Promise<EnqueueReceipt> {
    const made = this.makeJob({ target, input, options });
    const job = made instanceof Promise ? await made : made;
    if (options.tx === undefined) return this.#batcher.add(job);
    // Inside the caller's transaction nothing is repeated: after an error only the caller knows the state of the transaction.
    // And nothing is awaited before the write: on SQLite the transaction may be a synchronous function that is over after this turn.
    const store = this.#connection.opened ?? (await this.#connection.store());
    const [result] = await store.enqueue({ jobs: [job], tx: options.tx });
    return receive(result as EnqueueResult);
  }

  /** The job that an enqueue would write. A promise only if its schema is asynchronous. */
  makeJob({ target, input, options }: Asked): NewJob | Promise<NewJob> {
    return makeJob(this.#definition(target), input, options, this.#settings, this.#runtime);
  }

  /** The queue that jobs of a definition go to; null if it is not known here. */
  queueOf(target: AnyDefinition | string): string | null {
    const definition = typeof target === "string" ? this.#definitions.get(target) : target;
    return definition?.queue ?? null;
  }

  /** Writes a job that was made elsewhere. */
  add(job: NewJob): Promise<EnqueueReceipt> {
    return this.#batcher.add(job);
  }

  /** All inputs are checked before the first is written. A call that fails in the middle says how many were written. */
  async enqueueMany({ asked, isMixed, options: given }: AskedMany): Promise<EnqueueReceipt[]> {
    const options = given as EnqueueManyOptions;
    checkKnown(options, ["onProgress", "tx"], "enqueueMany");
    const made = this.#makeJobs(asked);
    const jobs = made instanceof Promise ? await made : made;
    if (jobs.length === 0) return [];
    const { tx } = options;
    const allOrNone = isMixed && tx === undefined;
    const store = this.#connection.opened ?? (await this.#connection.store());
    if (allOrNone) checkOneTrip(jobs, store.capabilities.acrossSlots);
    const receipts: EnqueueReceipt[] = [];
    const refused: EnqueueResult[] = [];
    const receiveAll = (results: readonly EnqueueResult[]): void => {
      for (const result of results) {
        if (result.outcome === "refused") refused.push(result);
        else receipts.push(receive(result));
      }
      options.onProgress?.(receipts.length + refused.length, jobs.length);
    };
    // A transaction may be a synchronous function, which is over after this turn: everything goes into it at once.
    if (tx !== undefined) receiveAll(await store.enqueue({ jobs, tx }));
    else await writeMany(this.#runtime, store, { jobs, allOrNone }, receiveAll);
    if (refused.length === 0) return receipts;
    throw asRefused(refused, jobs.length, allOrNone);
  }

  #makeJobs(asked: readonly Asked[]): NewJob[] | Promise<NewJob[]> {
    const jobs = asked.map((one) => this.makeJob(one));
    return jobs.some((job) => job instanceof Promise) ? Promise.all(jobs) : (jobs as NewJob[]);
  }

  /** Enqueues in the transaction of a handler's `tx`. */
  enqueuer(write: EnqueueWithin, onEnqueued: TransactionJobsParts["onEnqueued"]): TransactionEnqueuer {
    return new TransactionEnqueuer({ make: (asked) => this.#makeJobs(asked), write, onEnqueued });
  }

  async get(job: JobRef, parse?: (text: string) => unknown): Promise<Job | null> {
    const id = idOf(job);
    const [found] = await this.#ask((store) => store.get({ ids: [id] }));
    return found ? decodeJob(found, parse) : null;
  }

  async list(filter: JobFilter, options: ListOptions): Promise<{ jobs: Job[]; cursor: string | null }> {
    checkKnown(options, ["limit", "order", "cursor"], "list");
    const limit = checkInteger(options.limit ?? 50, 1, 10_000, "limit");
    const order = checkOneOf(options.order ?? "newest", ["newest", "oldest"], "order");
    const params = { filter: checkFilter(filter), limit, order, cursor: options.cursor ?? null };
    const page = await this.#ask((store) => store.list(params));
    return { jobs: page.jobs.map((job) => decodeJob(job)), cursor: page.cursor };
  }

  async count(filter: JobFilter): Promise<number> {
    const rows = await this.countBy([], filter);
    return rows.reduce((sum, row) => sum + row.count, 0);
  }

  async countBy(by: readonly CountBy[], filter: JobFilter): Promise<CountRow[]> {
    for (const one of by) checkOneOf(one, ["state", "queue", "name"], "what to count by");
    checkFilter(filter);
    return this.#ask((store) => store.count({ filter, by }));
  }

  async trail(job: JobRef): Promise<TrailLine[]> {
    const id = idOf(job);
    return (await this.#ask((store) => store.trail({ id }))).map(decodeTrail);
  }

  async cancel(target: Target, reason: string | null): Promise<Tally<CancelOutcome>> {
    const store = await this.#connection.store();
    return runOver(this.#runtime, (params) => store.cancel(params), target, reason);
  }

  async redrive(target: Target, reason: string | null): Promise<Tally<RedriveOutcome>> {
    const store = await this.#connection.store();
    return runOver(this.#runtime, (params) => store.redrive(params), target, reason);
  }

  async delete(target: Target): Promise<Tally<RemoveOutcome>> {
    const store = await this.#connection.store();
    return runOver(this.#runtime, (params) => store.remove(params), target, null);
  }

  async update(job: JobRef, changes: JobChanges): Promise<UpdateResult> {
    const id = idOf(job);
    checkKnown(changes, ["input", "runAt", "delay", "priority"], "update");
    if (changes.delay !== undefined && changes.runAt !== undefined) {
      throw new EscapementError("invalid-option", "delay and runAt are mutually exclusive; pass one of them");
    }
    const input = "input" in changes ? await this.#changedInput(id, changes.input) : {};
    if (input === null) return { outcome: "unknown", state: null };
    const params = {
      id,
      ...input,
      ...(changes.runAt === undefined ? {} : { runAt: checkDate(changes.runAt, "runAt") }),
      ...(changes.delay === undefined ? {} : { delayMs: parseDuration(changes.delay, "delay") }),
      ...(changes.priority === undefined ? {} : { priority: checkPriority(changes.priority, "priority") }),
    };
    return this.#ask((store) => store.update(params));
  }

  async configureQueue(queue: string, options: QueueOptions & { paused?: boolean }): Promise<QueueConfig> {
    checkKnown(options, ["concurrency", "rate", "paused"], "configureQueue");
    const { concurrency, rate, paused } = options;
    const change = {
      queue: checkName(queue, "the name of a queue"),
      ...(paused === undefined ? {} : { paused: checkBoolean(paused, "paused") }),
      ...(concurrency === undefined
        ? {}
        : {
            concurrency: concurrency === null ? null : checkInteger(concurrency, 1, 1_000_000, "concurrency"),
          }),
      ...(rate === undefined ? {} : { rate: rate === null ? null : checkRate(rate) }),
    };
    return this.#ask((store) => store.configureQueue(change));
  }

  async scan(params: ScanParams): Promise<ScanResult> {
    checkScanFilter(params.filter);
    return this.#ask((store) => store.scan(params));
  }

  /**
   * Changes jobs that match, once: a call whose reply was lost is not repeated, since what it changed may match again. By ids, each of which
   * must still match the other terms.
   */
  async changeOnce(
    verb: ChangeVerb,
    filter: JobFilter & { readonly ids: readonly string[] },
    reason: string,
  ): Promise<readonly { readonly id: string; readonly outcome: string }[]> {
    const store = await this.#connection.store();
    const select = { filter: checkFilter(filter), limit: filter.ids.length, cursor: null };
    return (await store[verb]({ select, reason })).results;
  }

  depths(): Promise<Depths> {
    return this.#ask((store) => store.depths());
  }

  note(params: NoteParams): Promise<void> {
    return this.#ask((store) => store.note(params));
  }

  record(...entries: readonly NewAuditEntry[]): Promise<void> {
    return this.#ask((store) => store.record({ entries }));
  }

  audit(params: AuditParams): Promise<AuditPage> {
    return this.#ask((store) => store.audit(params));
  }

  async history(options: HistoryOptions): Promise<History> {
    const params = historyParams(options, this.#runtime.clock.now());
    return this.#ask((store) => store.history(params));
  }

  newId(): string {
    return this.#runtime.newId();
  }

  queues(): Promise<QueueConfig[]> {
    return this.#ask((store) => store.queues());
  }

  nodes(): Promise<SeenNode[]> {
    return this.#ask((store) => store.nodes());
  }

  partitions(): Promise<PartitionTable> {
    return this.#ask((store) => store.partitions());
  }

  async health(): Promise<AppHealth> {
    const store = await this.#connection.store();
    return { ...(await store.health()), capabilities: store.capabilities };
  }

  async migrate(dryRun: boolean): Promise<readonly PendingMigration[]> {
    const store = await this.#connection.store();
    const pending = await store.pendingMigrations();
    if (!dryRun) await store.migrate();
    return pending;
  }

  async result(job: JobRef, options: ResultOptions): Promise<unknown> {
    const id = idOf(job);
    checkKnown(options, ["timeout"], "result");
    const { timeout = "5m" } = options;
    const timeoutMs = timeout === Infinity ? Infinity : parseDuration(timeout, "timeout");
    const why = async (): Promise<string> => {
      const diagnosis = await this.diagnose(id);
      return diagnosis === null ? "" : summaryOf(diagnosis);
    };
    return waitForResult(this.#connection, this.#runtime, id, timeoutMs, why);
  }

  async diagnose(job: JobRef): Promise<Diagnosis | null> {
    const id = idOf(job);
    return this.#ask((store) => diagnose(store, this.#definitions, id));
  }

  /** Resolves when everything that was enqueued so far is written. */
  settled(): Promise<void> {
    return this.#batcher.settled();
  }

  async #changedInput(id: string, input: unknown) {
    const [job] = await this.#ask((store) => store.get({ ids: [id] }));
    if (!job) return null;
    const definition = this.#definition(job.name);
    const text = encodeInput(job.name, input, this.#settings.maxInputBytes);
    const value =
      definition.schema === null
        ? withoutRawNumbers(input, text)
        : await validate(definition.schema, JSON.parse(text), `job ${JSON.stringify(job.name)}`, input);
    return { input: text, ...limitKeys(definition, value) };
  }

  #ask<T>(question: (store: Store) => Promise<T>): Promise<T> {
    return withRetries(this.#runtime, () => this.#connection.ask(question));
  }

  #definition(target: AnyDefinition | string): AnyDefinition {
    if (typeof target === "object" && target !== null && "name" in target && "backoff" in target)
      return target;
    const found = typeof target === "string" ? this.#definitions.get(target) : undefined;
    if (found !== undefined) return found;
    throw new EscapementError(
      "unknown-job",
      `${describe(target)} is not a job that this app knows; pass what defineJob returned, or list it in jobs`,
    );
  }
}

function checkRate(rate: NonNullable<QueueOptions["rate"]>): NonNullable<QueueConfig["rate"]> {
  checkKnown(rate, ["limit", "per"], "rate");
  return {
    limit: checkInteger(rate.limit, 1, 1_000_000_000, "rate.limit"),
    perMs: checkInteger(parseDuration(rate.per, "rate.per"), 1, Number.MAX_SAFE_INTEGER, "rate.per"),
  };
}
