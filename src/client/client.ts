import type { AnyDefinition } from "../definition.ts";
import { checkPriority } from "../definition.ts";
import { type Diagnosis, diagnose, summaryOf } from "../diagnosis/diagnosis.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { describe, EscapementError } from "../errors.ts";
import type { Job } from "../job.ts";
import { checkId, checkName } from "../names.ts";
import { checkDate, checkInteger, checkKnown, checkOneOf } from "../options.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { Runtime } from "../runtime.ts";
import { validate } from "../schema.ts";
import type { Settings } from "../settings.ts";
import type {
  CancelOutcome,
  Capabilities,
  CountBy,
  CountRow,
  EnqueueResult,
  Health,
  JobFilter,
  NewJob,
  PartitionTable,
  PendingMigration,
  QueueConfig,
  RedriveOutcome,
  SeenNode,
  Store,
  UpdateResult,
} from "../store.ts";
import { withRetries } from "../transient.ts";
import { EnqueueBatcher, enqueueChunk, receive, writeJobs } from "./batcher.ts";
import type { Connection } from "./connection.ts";
import { decodeJob, decodeTrail, type TrailLine } from "./decode.ts";
import { checkFilter } from "./filter.ts";
import { type EnqueueOptions, encodeInput, limitKeys, makeJob } from "./new-job.ts";
import { waitForResult } from "./result.ts";
import { runOver, type Tally, type Target } from "./select.ts";

export interface EnqueueManyOptions {
  /** Told after each chunk how many are written, of how many. */
  readonly onProgress?: (written: number, total: number) => void;
}

export interface JobChanges<Input = unknown> {
  readonly input?: Input;
  readonly runAt?: Date;
  readonly delay?: Duration;
  readonly priority?: number;
}

export interface QueueOptions {
  /** Active jobs over all nodes; null takes the limit away. */
  readonly concurrency?: number | null;
  /** Starts per window over all nodes; null takes the limit away. */
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

/** How the store is, and what it can do. */
export interface AppHealth extends Health {
  readonly capabilities: Capabilities;
}

/** The side that asks: everything an application, a CLI or a screen wants to know or change. It runs no loops. */
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
    const made = makeJob(this.#definition(target), input, options, this.#settings, this.#runtime);
    const job = made instanceof Promise ? await made : made;
    if (options.tx === undefined) return receive(await this.#batcher.add(job));
    // Inside the caller's transaction nothing is repeated: after an error only the caller knows where the transaction stands.
    // And nothing is awaited before the write: on SQLite the transaction may be a synchronous function that is over after this turn.
    const store = this.#connection.opened ?? (await this.#connection.store());
    const [result] = await store.enqueue({ jobs: [job], tx: options.tx });
    return receive(result as EnqueueResult);
  }

  /** The job that an enqueue would write: what schedules make their templates of. */
  async makeJob(target: AnyDefinition | string, input: unknown, options: EnqueueOptions): Promise<NewJob> {
    return makeJob(this.#definition(target), input, options, this.#settings, this.#runtime);
  }

  /** Writes a job that was made elsewhere. */
  async add(job: NewJob): Promise<EnqueueReceipt> {
    return receive(await this.#batcher.add(job));
  }

  /** All inputs are checked before the first is written. A call that fails in the middle tells how many were written. */
  async enqueueMany(
    target: AnyDefinition | string,
    items: Iterable<EnqueueOptions & { readonly input: unknown }>,
    options: EnqueueManyOptions,
  ): Promise<EnqueueReceipt[]> {
    checkKnown(options, ["onProgress"], "enqueueMany");
    const definition = this.#definition(target);
    const jobs: NewJob[] = [];
    for (const { input, ...own } of items) {
      if (own.tx !== undefined) {
        throw new EscapementError(
          "invalid-option",
          "enqueueMany writes in chunks and takes no tx; use enqueue with tx",
        );
      }
      const made = makeJob(definition, input, own, this.#settings, this.#runtime);
      jobs.push(made instanceof Promise ? await made : made);
    }
    const receipts: EnqueueReceipt[] = [];
    const refused: EnqueueResult[] = [];
    for (let start = 0; start < jobs.length; start += enqueueChunk) {
      const chunk = jobs.slice(start, start + enqueueChunk);
      const results = await writeJobs(this.#connection.store, this.#runtime, chunk).catch(
        (error: unknown) => {
          throw asPartial(error, start, jobs.length);
        },
      );
      for (const result of results) {
        if (result.outcome === "refused") refused.push(result);
        else receipts.push(receive(result));
      }
      options.onProgress?.(receipts.length + refused.length, jobs.length);
    }
    const [first] = refused;
    if (first !== undefined) throw asRefused(first, refused.length, jobs.length);
    return receipts;
  }

  async get(id: string): Promise<Job | null> {
    checkId(id);
    const [job] = await this.#ask((store) => store.get({ ids: [id] }));
    return job ? decodeJob(job) : null;
  }

  async list(filter: JobFilter, options: ListOptions): Promise<{ jobs: Job[]; cursor: string | null }> {
    checkKnown(options, ["limit", "order", "cursor"], "list");
    const limit = checkInteger(options.limit ?? 50, 1, 10_000, "limit");
    const order = checkOneOf(options.order ?? "newest", ["newest", "oldest"], "order");
    const params = { filter: checkFilter(filter), limit, order, cursor: options.cursor ?? null };
    const page = await this.#ask((store) => store.list(params));
    return { jobs: page.jobs.map(decodeJob), cursor: page.cursor };
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

  async trail(id: string): Promise<TrailLine[]> {
    checkId(id);
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

  async update(id: string, changes: JobChanges): Promise<UpdateResult> {
    checkId(id);
    checkKnown(changes, ["input", "runAt", "delay", "priority"], "update");
    if (changes.delay !== undefined && changes.runAt !== undefined) {
      throw new EscapementError("invalid-option", "delay and runAt exclude each other; give one of them");
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
    if (rate) checkKnown(rate, ["limit", "per"], "rate");
    const change = {
      queue: checkName(queue, "the name of a queue"),
      ...(paused === undefined ? {} : { paused }),
      ...(concurrency === undefined
        ? {}
        : {
            concurrency: concurrency === null ? null : checkInteger(concurrency, 1, 1_000_000, "concurrency"),
          }),
      ...(rate === undefined
        ? {}
        : {
            rate: rate && {
              limit: checkInteger(rate.limit, 1, 1_000_000_000, "rate.limit"),
              perMs: checkInteger(
                parseDuration(rate.per, "rate.per"),
                1,
                Number.MAX_SAFE_INTEGER,
                "rate.per",
              ),
            },
          }),
    };
    return this.#ask((store) => store.configureQueue(change));
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

  async result(id: string, options: { readonly timeout?: Duration }): Promise<unknown> {
    checkId(id);
    checkKnown(options, ["timeout"], "result");
    const timeoutMs = parseDuration(options.timeout ?? "30s", "timeout");
    const why = async (): Promise<string> => {
      const diagnosis = await this.diagnose(id);
      return diagnosis === null ? "" : summaryOf(diagnosis);
    };
    return waitForResult(this.#connection, this.#runtime, id, timeoutMs, why);
  }

  async diagnose(id: string): Promise<Diagnosis | null> {
    checkId(id);
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
        ? input
        : await validate(definition.schema, JSON.parse(text), `job ${JSON.stringify(job.name)}`);
    return { input: text, ...limitKeys(definition, value) };
  }

  #ask<T>(question: (store: Store) => Promise<T>): Promise<T> {
    return withRetries(this.#runtime, async () => question(await this.#connection.store()));
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

function asRefused({ id, parent }: EnqueueResult, refused: number, total: number): EscapementError {
  return new EscapementError(
    "unknown-parent",
    `${refused} of ${total} jobs wait for parents that no job has as its id, the first of them ${JSON.stringify(id)} for ${JSON.stringify(parent)}; ` +
      "the others were written",
  );
}

function asPartial(error: unknown, written: number, total: number): unknown {
  if (!(error instanceof EscapementError)) return error;
  return new EscapementError(
    error.code,
    `${error.message} (${written} of ${total} jobs were written before that)`,
    {
      cause: error,
    },
  );
}
