import {
  type AppHealth,
  Client,
  type JobChanges,
  type ListOptions,
  type QueueOptions,
  type ResultOptions,
} from "../client/client.ts";
import { Connection } from "../client/connection.ts";
import type { TrailLine } from "../client/decode.ts";
import { type SubscribeOptions, subscribeToEnds } from "../client/endings.ts";
import type { HistoryOptions } from "../client/history.ts";
import type { Tally, Target } from "../client/select.ts";
import { type JobUpdate, type WatchOptions, watchJob } from "../client/watch.ts";
import type { AnyDefinition } from "../definition.ts";
import type { Diagnosis } from "../diagnosis/diagnosis.ts";
import { parseDuration } from "../duration.ts";
import type { EnqueueVerbs } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import { type AppEventName, type AppListener, Events } from "../events.ts";
import type { History } from "../history.ts";
import type { Job } from "../job.ts";
import type { Observation } from "../observe/observation.ts";
import { checkKnown } from "../options.ts";
import { type EnqueueReceipt, idOf, type JobRef } from "../receipt.ts";
import { checkNode } from "../runtime/node-version.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type EscapementOptions, resolveSettings, type Settings } from "../settings.ts";
import type { CancelOutcome, RedriveOutcome, RemoveOutcome, UpdateResult } from "../store/jobs.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { PendingMigration } from "../store/opening.ts";
import type { PartitionTable } from "../store/partitions.ts";
import type { CountBy, CountRow, JobFilter } from "../store/questions.ts";
import type { QueueConfig } from "../store/queues.ts";
import { checkMiddleware, composeMiddleware, type Middleware } from "../telemetry/middleware.ts";
import type { Probe } from "../telemetry/probe.ts";
import type { BackfillOptions } from "./backfill.ts";
import { CancelReasons } from "./cancel-reasons.ts";
import { indexDefinitions } from "./definitions.ts";
import { enqueueVerbs, jobsForHandlers } from "./enqueue.ts";
import { explain } from "./explain.ts";
import { HistoryWriter } from "./history-writer.ts";
import { Life } from "./life.ts";
import { Node, type StartOptions } from "./node.ts";
import { observe } from "./observe.ts";
import type { Occurrence } from "./occurrences.ts";
import { openStore, type Surroundings } from "./open-store.ts";
import { nodeId } from "./presence.ts";
import { Probes } from "./probes.ts";
import type { Schedule } from "./schedule.ts";
import { type OccurrencesOptions, Schedules, type ScheduleVerb } from "./schedules.ts";
import { type Ticked, tick } from "./tick.ts";
import type { ReasonOptions, StopOptions } from "./verb-options.ts";
import { warnOfEnds } from "./warn-of-ends.ts";

/** What `createEscapement` returns. */
export class Escapement implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #runtime: Runtime;
  readonly #definitions: ReadonlyMap<string, AnyDefinition>;
  readonly #nodeId: string;
  readonly #events: Events;
  readonly #cancelReasons: CancelReasons;
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #schedules: Schedules;
  readonly #observation: Observation | null;
  readonly #history: HistoryWriter;
  readonly #middleware: Middleware[];
  readonly #life: Life;
  readonly #probes: Probes;

  /** Applications call `createEscapement`; a custom runtime is for tests and simulations, surroundings are for the command line. */
  constructor(options: EscapementOptions, runtime: Runtime, surroundings: Surroundings = {}) {
    checkNode();
    const { config, mustExist = false, withInputs = false } = surroundings;
    this.#settings = resolveSettings(options, process.env, config === undefined ? undefined : () => config);
    this.#runtime = runtime;
    this.#definitions = indexDefinitions(this.#settings.jobs);
    this.#events = new Events(this.#settings.log, withInputs);
    warnOfEnds(this.#events, this.#settings.log);
    this.#connection = new Connection(() => openStore(this.#settings, runtime, mustExist));
    this.#client = new Client(this.#connection, this.#definitions, this.#settings, runtime);
    this.#cancelReasons = new CancelReasons(this.#events, (id) => this.#client.get(id));
    const { telemetry } = this.#settings;
    this.#observation = observe(this, this.#events, runtime.clock, () => this.#life.node);
    const verbs = enqueueVerbs(this.#client, this.#events.emit, telemetry, () => this.#life.assertUsable());
    this.enqueue = verbs.enqueue;
    this.enqueueMany = verbs.enqueueMany;
    this.#nodeId = nodeId(runtime.newId());
    this.#schedules = new Schedules(this.#connection, this.#client, this.#settings, runtime, this.#nodeId);
    this.schedule = this.#schedules.schedule;
    this.#history = new HistoryWriter(this.#events, runtime.clock, this.#nodeId, () =>
      this.#connection.store(),
    );
    this.#middleware = [...(telemetry === null ? [] : [telemetry.middleware]), ...this.#settings.middleware];
    this.#life = new Life({
      settings: this.#settings,
      connection: this.#connection,
      client: this.#client,
      schedules: this.#schedules,
      cancelReasons: this.#cancelReasons,
      observation: this.#observation,
      history: this.#history,
      emit: this.#events.emit,
      makeNode: (started) => this.#makeNode(started),
    });
    this.#probes = new Probes(this.#settings, this.#connection, runtime.clock, this.#life);
  }

  #makeNode(options: StartOptions): Node {
    return new Node({
      id: this.#nodeId,
      settings: this.#settings,
      runtime: this.#runtime,
      definitions: this.#definitions,
      jobs: jobsForHandlers(this.#client, this.#events.emit, this.#settings.telemetry),
      around: composeMiddleware(this.#middleware),
      emit: this.#cancelReasons.emit,
      keepDepths: (depths) => this.#history.keepDepths(depths),
      log: this.#settings.log,
      options,
    });
  }

  // ── Jobs ──

  /** Enqueues one job. Calls made in the same turn of the event loop share one trip to the store. */
  readonly enqueue: EnqueueVerbs["enqueue"];

  /** Enqueues many jobs of one definition, or up to a thousand of several, all or none. All inputs are checked before the first is written. */
  readonly enqueueMany: EnqueueVerbs["enqueueMany"];

  /** A job, also by an id that was absorbed into it. */
  get<Result = unknown>(job: JobRef<Result>): Promise<Job<unknown, Result> | null> {
    return this.#client.get(job) as Promise<Job<unknown, Result> | null>;
  }

  /** Jobs that match, newest first, a page at a time. */
  list(filter: JobFilter = {}, options: ListOptions = {}): Promise<{ jobs: Job[]; cursor: string | null }> {
    return this.#client.list(filter, options);
  }

  count(filter: JobFilter = {}): Promise<number> {
    return this.#client.count(filter);
  }

  /** Counts by state, queue and name, in any combination. */
  countBy(by: readonly CountBy[], filter: JobFilter = {}): Promise<CountRow[]> {
    return this.#client.countBy(by, filter);
  }

  /** The story of a job: failures, crashes, edits, redrives, and the lines its handler logged. */
  trail(job: JobRef): Promise<TrailLine[]> {
    return this.#client.trail(job);
  }

  /** Cancels one job, several, or all that match. An active one is asked to stop. */
  async cancel(target: Target, options: ReasonOptions = {}): Promise<Tally<CancelOutcome>> {
    checkKnown(options, ["reason"], "cancel");
    return this.#client.cancel(target, options.reason ?? null);
  }

  /** Sends dead and lost jobs back to waiting: one, several, or all that match. */
  async redrive(target: Target, options: ReasonOptions = {}): Promise<Tally<RedriveOutcome>> {
    checkKnown(options, ["reason"], "redrive");
    return this.#client.redrive(target, options.reason ?? null);
  }

  /**
   * Forgets jobs that have ended, with their input, result, trail and aliases: one, several, or all that match. From then on their ids are
   * new ones: enqueued again, they run again. The ledger of a schedule keeps its rows.
   */
  delete(target: Target): Promise<Tally<RemoveOutcome>> {
    return this.#client.delete(target);
  }

  /** Changes a job that has not started: its input, time or priority. */
  update(job: JobRef, changes: JobChanges): Promise<UpdateResult> {
    return this.#client.update(job, changes);
  }

  /**
   * Waits until a job has succeeded, and returns its result. Throws `job-failed` when it ended in any other state, `result-not-kept` when its result
   * could not be kept, and `result-timeout` when it has not ended in time.
   */
  result<Result = unknown>(job: JobRef<Result>, options: ResultOptions = {}): Promise<Result> {
    return this.#client.result(job, options) as Promise<Result>;
  }

  /**
   * Yields what happens to a job until it has ended, wherever it runs: states, progress, lines of its trail.
   *
   * @example
   * for await (const update of app.watch(receipt)) if (update.kind === "progress") bar.update(update.value);
   */
  watch(job: JobRef, options: WatchOptions = {}): AsyncGenerator<JobUpdate, void, undefined> {
    checkKnown(options, ["signal"], "watch");
    return watchJob(this.#connection, this.#runtime, idOf(job), options);
  }

  /**
   * Yields jobs that match and end from now on, in any process, however long ago they were enqueued.
   *
   * @example
   * for await (const job of await app.subscribe({ queues: ["mail"] })) console.log(job.id, job.state);
   */
  subscribe(filter: JobFilter = {}, options: SubscribeOptions = {}): Promise<AsyncGenerator<Job, void>> {
    return subscribeToEnds(this.#connection, this.#runtime, filter, options);
  }

  // ── Schedules ──

  /**
   * Makes or changes a schedule: a named rule that produces jobs. Calling it again with the same rule changes nothing, so every
   * node may call it at its start.
   *
   * @example
   * await app.schedule("nightly", { cron: "0 3 * * *", timezone: "Europe/Berlin" }, invoice, { customer: "all" });
   */
  readonly schedule: ScheduleVerb;

  /** Its jobs and its ledger stay. False when there was none. */
  unschedule(key: string): Promise<boolean> {
    return this.#schedules.remove(key);
  }

  /** Nothing of it fires until it is resumed; what would have is recorded as skipped. */
  pauseSchedule(key: string): Promise<Schedule> {
    return this.#schedules.pause(key);
  }

  resumeSchedule(key: string): Promise<Schedule> {
    return this.#schedules.resume(key);
  }

  /** Runs a schedule's job once, now, beside its regular occurrences. */
  triggerNow(key: string): Promise<EnqueueReceipt> {
    return this.#schedules.trigger(key);
  }

  /** Plans the occurrences of a span of the past that were skipped or never planned. Returns how many were planned. */
  backfill(key: string, from: Date, to: Date, options: BackfillOptions = {}): Promise<number> {
    return this.#schedules.backfill(key, from, to, options);
  }

  schedules(): Promise<Schedule[]> {
    return this.#schedules.list();
  }

  getSchedule(key: string): Promise<Schedule | null> {
    return this.#schedules.get(key);
  }

  /** The ledger of a schedule: each occurrence of a span, and its fate. */
  occurrences(key: string, options: OccurrencesOptions = {}): Promise<Occurrence[]> {
    return this.#schedules.occurrences(key, options);
  }

  /** The story of a job, or of an occurrence (`"nightly@2026-11-15T03:00:00Z"`), a line each: why did it run, or not? */
  explain(target: JobRef): Promise<string[]> {
    return explain(this, typeof target === "string" ? target : idOf(target));
  }

  /** Why a job has not ended, for programs: a code and fields for each reason, with the words of `explain`. Null for an unknown id. */
  diagnose(id: string): Promise<Diagnosis | null> {
    return this.#client.diagnose(id);
  }

  // ── Queues and nodes ──

  /** No node claims jobs of this queue any more; running jobs finish. */
  pauseQueue(queue: string): Promise<QueueConfig> {
    return this.#client.configureQueue(queue, { paused: true });
  }

  resumeQueue(queue: string): Promise<QueueConfig> {
    return this.#client.configureQueue(queue, { paused: false });
  }

  /** Limits a whole queue over all nodes; it holds from the next claim on. */
  configureQueue(queue: string, options: QueueOptions): Promise<QueueConfig> {
    return this.#client.configureQueue(queue, options);
  }

  queues(): Promise<QueueConfig[]> {
    return this.#client.queues();
  }

  /** Living nodes, and what they run. */
  nodes(): Promise<SeenNode[]> {
    return this.#client.nodes();
  }

  /** What has ended, how late it started and how long it took, by minute or by hour. Figures for charts: see docs/OPERATE.md. */
  history(options: HistoryOptions = {}): Promise<History> {
    return this.#client.history(options);
  }

  /** How relays share the partitions, and which holds what. */
  partitions(): Promise<PartitionTable> {
    return this.#client.partitions();
  }

  /** The state of the store: its engine, its clock, what it can promise, and what is wrong with it. */
  health(): Promise<AppHealth> {
    return this.#client.health();
  }

  /** Whether this process is alive: its loop runs, the store answers. `/healthz` on the port of the metrics, and in the API. */
  liveness(): Promise<Probe> {
    return this.#probes.liveness();
  }

  /** Whether this process can work: claims are being made, or why not. `/readyz` on the port of the metrics, and in the API. */
  readiness(): Probe {
    return this.#probes.readiness();
  }

  /** What this process has counted, in the text form of Prometheus. Needs the option `metrics`. */
  async metrics(): Promise<string> {
    if (this.#observation !== null) return this.#observation.text();
    throw new EscapementError("metrics-off", "this app has no metrics; create it with metrics: true");
  }

  /** The port that serves `GET /metrics`; null if there is none, or not yet. */
  get metricsPort(): number | null {
    return this.#observation?.port ?? null;
  }

  /** Brings the schema up to date, or only says what that would run; for apps with `migrate: false`. */
  async migrate(options: { readonly dryRun?: boolean } = {}): Promise<readonly PendingMigration[]> {
    checkKnown(options, ["dryRun"], "migrate");
    return this.#client.migrate(options.dryRun ?? false);
  }

  /** What {@link Operations} is built on. @internal */
  get client(): Client {
    return this.#client;
  }

  /** The settings, as options, environment, file and defaults made them. */
  get settings(): Settings {
    return this.#settings;
  }

  /** The definitions that this process knows. */
  get definitions(): readonly AnyDefinition[] {
    return this.#settings.jobs;
  }

  // ── Life ──

  on<E extends AppEventName>(event: E, listener: AppListener<E>): this {
    this.#events.on(event, listener);
    return this;
  }

  off<E extends AppEventName>(event: E, listener: AppListener<E>): this {
    this.#events.off(event, listener);
    return this;
  }

  /**
   * Adds a middleware, which runs around every handler of this process, inside those that were added before. Before `start`.
   *
   * @example
   * app.use(async ({ job }, next) => log.time(job.name, next));
   */
  use(middleware: Middleware): this {
    this.#life.assertNotStarted("call use before start");
    this.#middleware.push(...checkMiddleware([middleware], "the middleware of use"));
    return this;
  }

  /** Opens the store and runs the roles of this process. */
  start(options: StartOptions = {}): Promise<void> {
    return this.#life.start(options);
  }

  /**
   * Runs what is due now, instead of start, and stops the app: for functions and machines woken by something else, such as
   * `handler = () => createEscapement({ jobs }).tick()`. What becomes due meanwhile is for the next one.
   */
  async tick(): Promise<Ticked> {
    this.#life.assertNotStarted("it runs what is due without a tick; call tick instead of start");
    return await tick(this);
  }

  /** Stops gracefully: what runs may finish, every outcome is written, then the store is closed. Calling it again waits for the same end. */
  async stop(options: StopOptions = {}): Promise<void> {
    checkKnown(options, ["timeout"], "stop");
    const timeoutMs = parseDuration(options.timeout ?? "30s", "timeout");
    await this.#life.stop(timeoutMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
