import type { BackfillOptions } from "../app/backfill.ts";
import type { Escapement } from "../app/escapement.ts";
import type { Occurrence } from "../app/occurrences.ts";
import type { Schedule } from "../app/schedule.ts";
import type { OccurrencesOptions, ScheduleOptions, ScheduleOutcome } from "../app/schedules.ts";
import type { Client, JobChanges, QueueOptions } from "../client/client.ts";
import type { TrailLine } from "../client/decode.ts";
import type { HistoryOptions } from "../client/history.ts";
import type { Tally } from "../client/select.ts";
import { nextFireTimes } from "../cron/spec.ts";
import { type AnyDefinition, checkPriority } from "../definition.ts";
import type { Diagnosis } from "../diagnosis/diagnosis.ts";
import type { EnqueueOptions } from "../enqueue.ts";
import { EscapementError } from "../errors.ts";
import { parseExact } from "../exact-json.ts";
import type { History } from "../history.ts";
import type { Job } from "../job.ts";
import { fireSpecOf, type ScheduleSpec } from "../planner/schedule-spec.ts";
import type { EnqueueReceipt } from "../receipt.ts";
import type { CancelOutcome, RedriveOutcome, RemoveOutcome, UpdateResult } from "../store/jobs.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { PartitionTable } from "../store/partitions.ts";
import type { CountBy, CountRow, JobFilter, ScanFilter } from "../store/questions.ts";
import type { QueueConfig } from "../store/queues.ts";
import { type Act, checkAct, recorded, textOf } from "./act.ts";
import { type AuditLogFilter, type AuditLogPage, readAudit } from "./audit-log.ts";
import { type BackfillPreview, previewBackfill } from "./backfill-preview.ts";
import { BulkTask, type BulkVerb } from "./bulk-task.ts";
import { type Children, findChildren } from "./children.ts";
import { type Failures, findFailures } from "./failures.ts";
import { findJobs, type JobsFilter, type JobsOptions, type JobsPage } from "./find-jobs.ts";
import { namesOf, type QueueView, viewsOf } from "./queue-views.ts";

/** All there is to know of a job. */
export interface JobStory {
  readonly job: Job;
  readonly trail: readonly TrailLine[];
  readonly diagnosis: Diagnosis | null;
}

/** Overview, for a screen. */
export interface Overview {
  readonly now: Date;
  /** By queue, name and state. */
  readonly counts: readonly CountRow[];
  readonly queues: readonly QueueView[];
  readonly nodes: readonly SeenNode[];
  /** Of those that ended last; `isPartial` says whether there are more. */
  readonly failures: Failures;
}

/** When, and which job: what a schedule is made of. */
export interface ScheduleTemplate {
  readonly spec: ScheduleSpec;
  /** The name of a job that the app defines. */
  readonly job: string;
  readonly input?: unknown;
  readonly options?: Omit<ScheduleOptions, "conflict">;
}

export interface BulkOptions {
  /** Changes nothing, and counts what would be changed. @default false */
  readonly dryRun?: boolean;
  /** Stops the task after the current page. */
  readonly signal?: AbortSignal;
}

/**
 * What people do with jobs, whatever screen they sit at: the command line, the HTTP API and the dashboard share it. It reads in bounded time,
 * and everything that it changes is recorded with who did it and why.
 */
export class Operations {
  readonly #app: Escapement;
  readonly #client: Client;

  constructor(app: Escapement) {
    this.#app = app;
    this.#client = app.client;
  }

  // ── Reading ──

  /** Jobs that match, a page at a time. */
  jobs(filter: JobsFilter = {}, options: JobsOptions = {}): Promise<JobsPage> {
    return findJobs(this.#client, filter, options);
  }

  async job(id: string): Promise<JobStory | null> {
    const job = await this.#client.get(id, parseExact);
    if (job === null) return null;
    const [trail, diagnosis] = await Promise.all([this.#client.trail(job.id), this.#client.diagnose(job.id)]);
    return { job, trail, diagnosis };
  }

  counts(by: readonly CountBy[], filter: JobFilter = {}): Promise<CountRow[]> {
    return this.#client.countBy(by, filter);
  }

  /** Dead and lost jobs, grouped by cause, within a bounded scan. */
  failures(filter: ScanFilter = {}, lookAt?: number): Promise<Failures> {
    return findFailures(this.#client, filter, lookAt);
  }

  /** Queues that have jobs, also such as have ended, that were configured, or that a definition or a living node names; by name. */
  async queues(): Promise<QueueView[]> {
    const [counts, depths, configs, nodes] = await Promise.all([
      this.#client.countBy(["queue"], {}),
      this.#client.depths(),
      this.#client.queues(),
      this.#client.nodes(),
    ]);
    return viewsOf(depths, configs, namesOf(counts, nodes, this.#app.definitions));
  }

  /** Whether a queue has jobs, was configured, or is served by a node that names its queues. */
  async isQueueKnown(queue: string): Promise<boolean> {
    const [[counted], configs, nodes] = await Promise.all([
      this.#client.countBy([], { queues: [queue] }),
      this.#client.queues(),
      this.#client.nodes(),
    ]);
    return (
      (counted?.count ?? 0) > 0 ||
      configs.some((config) => config.queue === queue) ||
      nodes.some((node) => node.queues?.includes(queue)) ||
      this.#app.definitions.some((definition) => definition.queue === queue)
    );
  }

  async overview(): Promise<Overview> {
    const [counts, depths, configs, nodes, failures] = await Promise.all([
      this.#client.countBy(["queue", "name", "state"], {}),
      this.#client.depths(),
      this.#client.queues(),
      this.#client.nodes(),
      this.failures(),
    ]);
    const queues = viewsOf(depths, configs, namesOf(counts, nodes, this.#app.definitions));
    return { now: depths.now, counts, queues, nodes, failures };
  }

  nodes(): Promise<SeenNode[]> {
    return this.#client.nodes();
  }

  partitions(): Promise<PartitionTable> {
    return this.#client.partitions();
  }

  schedules(): Promise<Schedule[]> {
    return this.#app.schedules();
  }

  schedule(key: string): Promise<Schedule | null> {
    return this.#app.getSchedule(key);
  }

  occurrences(key: string, options: OccurrencesOptions = {}): Promise<Occurrence[]> {
    return this.#app.occurrences(key, options);
  }

  /** The next times at which a schedule fires, as far as its rule says: limits and overlaps are not looked at. */
  async nextTimes(key: string, count: number): Promise<Date[]> {
    const schedule = await this.#app.getSchedule(key);
    if (schedule === null)
      throw new EscapementError("not-found", `there is no schedule ${JSON.stringify(key)}`);
    return nextFireTimes(fireSpecOf(schedule.spec), { count });
  }

  /** Which jobs wait for this one, as far as a bounded look at blocked jobs shows. */
  children(id: string): Promise<Children> {
    return findChildren(this.#client, id);
  }

  /** What {@link backfill} would plan. */
  previewBackfill(key: string, from: Date, to: Date): Promise<BackfillPreview> {
    return previewBackfill(this.#app, key, from, to);
  }

  /** What has ended, by minute or by hour. */
  history(options: HistoryOptions = {}): Promise<History> {
    return this.#client.history(options);
  }

  /** Who did what, newest first. */
  audit(
    filter: AuditLogFilter = {},
    options: { limit?: number; cursor?: string | null } = {},
  ): Promise<AuditLogPage> {
    return readAudit(this.#client, filter, options);
  }

  // ── Acting ──

  async enqueue(
    job: AnyDefinition | string,
    input: unknown,
    options: EnqueueOptions,
    act: Act,
  ): Promise<EnqueueReceipt> {
    // The id is made first, so the audit log names the job however the call ends.
    const id = options.id ?? this.#client.newId();
    return recorded(this.#client, act, {
      action: "enqueue",
      target: `job:${id}`,
      run: async () => {
        // The types say which input goes with which definition; a name takes any.
        const receipt = await this.#app.enqueue(job as string, input, { ...options, id });
        if (receipt.outcome === "added") await this.#note(id, act, "enqueued");
        return receipt;
      },
      outcome: (receipt) => receipt,
    });
  }

  cancel(ids: readonly string[], act: Act): Promise<Tally<CancelOutcome>> {
    return this.#change("cancel", ids, act, () => this.#client.cancel(ids, textOf(act)));
  }

  redrive(ids: readonly string[], act: Act): Promise<Tally<RedriveOutcome>> {
    return this.#change("redrive", ids, act, () => this.#client.redrive(ids, textOf(act)));
  }

  delete(ids: readonly string[], act: Act): Promise<Tally<RemoveOutcome>> {
    return this.#change("delete", ids, act, () => this.#client.delete(ids));
  }

  /** Changes a job that has not started. */
  async edit(id: string, changes: JobChanges, act: Act): Promise<UpdateResult> {
    if (Object.keys(changes).length === 0)
      throw new EscapementError("invalid-option", `expected something to change of ${JSON.stringify(id)}`);
    return this.#update("edit", id, changes, act, `edited (${Object.keys(changes).join(", ")})`);
  }

  /** Makes a job due now that waits for its time. */
  runNow(id: string, act: Act): Promise<UpdateResult> {
    return this.#update("run-now", id, { delay: 0 }, act, "made due");
  }

  pauseQueue(queue: string, act: Act): Promise<QueueConfig> {
    return this.#configure("pause", queue, act, { paused: true });
  }

  resumeQueue(queue: string, act: Act): Promise<QueueConfig> {
    return this.#configure("resume", queue, act, { paused: false });
  }

  limitQueue(queue: string, limits: QueueOptions, act: Act): Promise<QueueConfig> {
    return this.#configure("limit", queue, act, limits);
  }

  /** Makes a schedule, or changes the one of this key, whatever made it. */
  putSchedule(key: string, template: ScheduleTemplate, act: Act): Promise<ScheduleOutcome> {
    const { spec, job, input, options = {} } = template;
    return this.#schedule("put", key, act, () =>
      this.#app.schedule(key, spec, job, input, { conflict: "code-wins", ...options }),
    );
  }

  /** Changes when a schedule fires; its job stays. */
  changeRule(key: string, spec: ScheduleSpec, act: Act): Promise<ScheduleOutcome> {
    return this.#schedule("change", key, act, () => this.#app.schedule(key, spec, null));
  }

  pauseSchedule(key: string, act: Act): Promise<Schedule> {
    return this.#schedule("pause", key, act, () => this.#app.pauseSchedule(key));
  }

  resumeSchedule(key: string, act: Act): Promise<Schedule> {
    return this.#schedule("resume", key, act, () => this.#app.resumeSchedule(key));
  }

  /** False when there was none. */
  removeSchedule(key: string, act: Act): Promise<boolean> {
    return this.#schedule("remove", key, act, () => this.#app.unschedule(key));
  }

  /** Runs a schedule's job once, now. */
  trigger(key: string, act: Act): Promise<EnqueueReceipt> {
    return this.#schedule("trigger", key, act, async () => {
      const receipt = await this.#app.triggerNow(key);
      await this.#note(receipt.id, act, "triggered");
      return receipt;
    });
  }

  /** Plans the occurrences of a span of the past that were skipped or never planned. */
  backfill(key: string, from: Date, to: Date, act: Act, options: BackfillOptions = {}): Promise<number> {
    return this.#schedule("backfill", key, act, () => this.#app.backfill(key, from, to, options));
  }

  // ── Acting on all that match ──

  cancelAll(filter: JobsFilter, act: Act, options: BulkOptions = {}): BulkTask {
    return this.#all("cancel", filter, act, options);
  }

  redriveAll(filter: JobsFilter, act: Act, options: BulkOptions = {}): BulkTask {
    return this.#all("redrive", filter, act, options);
  }

  deleteAll(filter: JobsFilter, act: Act, options: BulkOptions = {}): BulkTask {
    return this.#all("remove", filter, act, options);
  }

  /** Makes all jobs due that wait for their time. */
  runNowAll(filter: JobsFilter, act: Act, options: BulkOptions = {}): BulkTask {
    return this.#all("run-now", filter, act, options);
  }

  /** Sets the priority of all jobs that have not started. */
  prioritizeAll(filter: JobsFilter, priority: number, act: Act, options: BulkOptions = {}): BulkTask {
    return this.#all("priority", filter, act, options, checkPriority(priority, "priority"));
  }

  #all(
    verb: BulkVerb,
    filter: JobsFilter,
    act: Act,
    { dryRun = false, signal }: BulkOptions,
    priority = 0,
  ): BulkTask {
    checkAct(act);
    const client = this.#client;
    const parts = { client, verb, priority, filter, reason: textOf(act), dryRun, ...(signal && { signal }) };
    if (dryRun) return new BulkTask(parts);
    return new BulkTask({
      ...parts,
      around: (run) =>
        recorded(client, act, {
          action: `${verb === "remove" ? "delete" : verb}-all`,
          target: `jobs:${JSON.stringify(filter)}`,
          run,
          outcome: ({ state, matched, outcomes, changed }) => ({ state, matched, ...outcomes, changed }),
        }),
    });
  }

  #change<T>(action: string, ids: readonly string[], act: Act, run: () => Promise<T>): Promise<T> {
    const target = ids.length === 1 ? `job:${ids[0]}` : `jobs:${JSON.stringify({ ids })}`;
    return recorded(this.#client, act, { action, target, run, outcome: (tally) => tally });
  }

  #update(action: string, id: string, changes: JobChanges, act: Act, what: string): Promise<UpdateResult> {
    return recorded(this.#client, act, {
      action,
      target: `job:${id}`,
      run: async () => {
        const result = await this.#client.update(id, changes);
        if (result.outcome === "updated") await this.#note(id, act, what);
        return result;
      },
      outcome: (result) => result,
    });
  }

  #configure(
    action: string,
    queue: string,
    act: Act,
    change: QueueOptions & { paused?: boolean },
  ): Promise<QueueConfig> {
    return recorded(this.#client, act, {
      action: `${action}-queue`,
      target: `queue:${queue}`,
      run: () => this.#client.configureQueue(queue, change),
      outcome: ({ paused, concurrency, rate }) => ({ paused, concurrency, rate }),
    });
  }

  #schedule<T>(action: string, key: string, act: Act, run: () => Promise<T>): Promise<T> {
    return recorded(this.#client, act, {
      action: `${action}-schedule`,
      target: `schedule:${key}`,
      run,
      outcome: (value) => (typeof value === "object" && value !== null && "spec" in value ? "done" : value),
    });
  }

  async #note(id: string, act: Act, what: string): Promise<void> {
    // The audit log has it in any case; what was done must not look undone for the sake of a line.
    await this.#client.note({ ids: [id], text: textOf(act, what) }).catch(() => {});
  }
}
