import { announce, warnNotKept } from "../claims/announce.ts";
import { safetyMarginMs, startingMarginMs } from "../claims/lease-margin.ts";
import { Outbox } from "../claims/outbox.ts";
import type { AnyDefinition } from "../definition.ts";
import type { JobsForHandlers } from "../enqueue.ts";
import { recordError } from "../errors.ts";
import type { Emit, Timing } from "../events.ts";
import type { Logger } from "../log.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Settings } from "../settings.ts";
import type { Outcome } from "../state.ts";
import type { ClaimedJob, ClaimRef, FinishResult } from "../store/claims.ts";
import type { RunningJob } from "../store/nodes.ts";
import type { Notice } from "../store/notices.ts";
import type { Store } from "../store/store.ts";
import type { Around } from "../telemetry/middleware.ts";
import { cancelledAmong } from "./cancels.ts";
import { claimNames } from "./claim-names.ts";
import { Claimer, type ClaimerParts, type ClaimerStatus } from "./claimer.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { asRenewal, Held, longestRunning } from "./held.ts";
import { LookAhead } from "./look-ahead.ts";
import { abandoned, decideOutcome, type Ending, released } from "./outcome.ts";
import { Ready } from "./ready.ts";
import { Reporter } from "./reporter.ts";
import { type DispatchEnd, type RunnerParts, runJob } from "./runner.ts";
import { startHeartbeat } from "./start-heartbeat.ts";
import { Threads } from "./threads.ts";
import { UnreadableJobs } from "./unreadable.ts";
import { WithoutEffect } from "./without-effect.ts";

export interface WorkerParts {
  readonly store: Store;
  /** The node's id. */
  readonly claimer: string;
  readonly definitions: ReadonlyMap<string, AnyDefinition>;
  readonly queues: ClaimerParts["queues"];
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly jobs: JobsForHandlers;
  readonly around: Around | null;
  readonly emit: Emit;
  readonly log: Logger;
}

/** Long enough for a thread to start even on a busy machine. */
const threadStartMs = 10_000;

/** How long handlers have to settle after their signal fired at the end of a shutdown. */
const shutdownGraceMs = 1_000;

/**
 * Runs jobs: the claimer brings them, the runner runs them, the heartbeat keeps them, the outbox writes their outcomes.
 * This is where the four meet.
 */
export class Worker {
  readonly #parts: WorkerParts;
  readonly #claimer: Claimer;
  readonly #outbox: Outbox<Held>;
  readonly #reporter: Reporter;
  readonly #threads = new Threads();
  readonly #unreadable = new UnreadableJobs();
  readonly #withoutEffect: WithoutEffect;
  readonly #runnerParts: RunnerParts;
  /** Claims of this process until their outcome is written, by job id. */
  readonly #held = new Map<string, Held>();
  /** Handlers that have not settled. */
  readonly #running = new Set<Held>();
  readonly #ready: Ready;
  readonly #lookAhead: LookAhead;
  #heartbeat: Heartbeat | null = null;
  #loop: Promise<void> | null = null;
  #unsubscribe: (() => Promise<void>) | null = null;
  #cancelWatch: (() => void) | null = null;
  #stopping = false;
  /** Everything that can keep this process from working has gone well. */
  #mayStartAny = false;
  #onIdle: (() => void) | null = null;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { store, claimer, runtime, settings, emit } = parts;
    this.#withoutEffect = new WithoutEffect(parts.log);
    const onReportError = (error: unknown): void => emit("error", { error, during: "reporting progress" });
    this.#reporter = new Reporter(store, claimer, runtime.clock, parts.log, onReportError);
    this.#outbox = new Outbox({ onWritten: this.#written, reports: this.#reporter });
    this.#lookAhead = new LookAhead(settings.lookAheadMs, settings.concurrency);
    this.#ready = new Ready({
      clock: runtime.clock,
      room: () => settings.concurrency - this.#running.size,
      mayStart: (held) => this.#mayStart(held),
      start: this.#startAll,
      giveBack: (held) => this.#record(held, released),
      onStall: () => this.#lookAhead.stalled(),
    });
    this.#claimer = new Claimer({
      ...parts,
      names: claimNames(parts.definitions),
      slots: {
        running: () => this.#running.size,
        runningIn: (queue) => [...this.#running].filter((held) => held.job.queue === queue).length,
        ready: () => this.#ready.size,
        wanted: () => this.#lookAhead.wanted,
        isOpen: () => this.#mayStartAny,
      },
      outbox: this.#outbox,
      onClaimed: this.#claimed,
      onGivenUp: this.#givenUp,
    });
    this.#runnerParts = {
      namespace: settings.namespace,
      claimer,
      store,
      runtime,
      reporter: this.#reporter,
      threads: this.#threads,
      jobs: parts.jobs,
      around: parts.around,
      maxResultBytes: settings.maxInputBytes,
      inbox: store.capabilities.transactions ? null : settings.inbox,
      onProgress: (held, value) => emit("progress", { job: held.job, value }),
    };
  }

  get active(): number {
    return this.#running.size;
  }

  /** What has run for at least `leastMs`, the longest first. */
  running(leastMs: number): RunningJob[] {
    return longestRunning(this.#running, leastMs, this.#parts.runtime.clock.monotonic());
  }

  get claims(): ClaimerStatus {
    return this.#claimer.status;
  }

  /** Every step that can fail. What is claimed meanwhile waits: a start that fails must not have begun a handler. */
  async prepare(): Promise<void> {
    this.#heartbeat = this.#startHeartbeat();
    // A handler that blocks the loop at once must not lose its job because the thread is not there yet.
    const ready = this.#parts.settings.leaseMs < threadStartMs ? this.#heartbeat.ready : null;
    // The first claim of a connection is slow, and so is listening.
    this.#loop = this.#claimer.run();
    this.#unsubscribe = await this.#parts.store.subscribe(this.#notice);
    await ready;
  }

  start(): void {
    this.#watch();
    this.#mayStartAny = true;
    this.#ready.fill();
    // What came after the first claim and before this process subscribed.
    this.#claimer.requestClaim();
  }

  /**
   * Takes no new jobs, gives back what has not started, lets handlers finish for up to `timeoutMs` while their leases are kept,
   * then fires their signals; writes every outcome before it resolves.
   */
  async stop(timeoutMs: number): Promise<void> {
    const { clock } = this.#parts.runtime;
    this.#stopping = true;
    this.#claimer.stopClaiming();
    this.#ready.stop();
    await this.#idle(timeoutMs);
    for (const held of this.#running) held.stop("shutdown", "the process is stopping");
    await this.#idle(shutdownGraceMs);
    for (const held of this.#running) this.#record(held, abandoned(held.job, this.#parts.settings.leaseMs));
    this.#claimer.end(false);
    // Beyond the lease there is nothing left to defend: the jobs were reaped.
    const cancel = clock.after(this.#parts.settings.leaseMs, () => this.#claimer.end(true));
    await this.#loop;
    cancel();
    this.#cancelWatch?.();
    await this.#unsubscribe?.();
    await this.#heartbeat?.stop();
    await this.#threads.stop();
  }

  // ── From the claimer ──

  readonly #claimed = (jobs: readonly ClaimedJob[], sentAtMs: number, storeNow: Date): void => {
    const now = this.#parts.runtime.clock.monotonic();
    const { leaseMs } = this.#parts.settings;
    for (const job of jobs) {
      const definition = this.#parts.definitions.get(job.name);
      const known = this.#held.get(job.id);
      // A repeated answer brings back what is already here: each (id, token) starts once.
      if (definition === undefined || known?.job.token === job.token) continue;
      known?.stop("lease-lost", "the lease ran out and the job was claimed again");
      const held = new Held(job, definition, now, sentAtMs + leaseMs, storeNow.getTime());
      this.#held.set(job.id, held);
      this.#ready.add(held);
    }
    // A claim answered while stopping is given back as a whole: nothing would start the jobs that wait for room.
    if (this.#stopping) this.#ready.stop();
    else if (this.#mayStartAny) this.#ready.fill();
  };

  /** A claim whose answer came too late to be renewed in time is not started: its handler would be stopped at once. It was not dispatched, so it may go back. */
  #mayStart(held: Held): boolean {
    const { runtime, settings } = this.#parts;
    const latestMs = held.safeUntilMs - startingMarginMs(settings.leaseMs, settings.heartbeatMs);
    const isUnwanted = this.#stopping || held.job.cancelRequested || held.stopCause !== null;
    return !isUnwanted && runtime.clock.monotonic() <= latestMs;
  }

  readonly #startAll = (jobs: readonly Held[]): void => {
    const nowMs = this.#parts.runtime.clock.monotonic();
    for (const held of jobs) {
      held.startedAtMs = nowMs;
      this.#running.add(held);
      // The heartbeat must know all of them before a handler can block the loop.
      this.#keep(held);
    }
    for (const held of jobs) this.#start(held);
  };

  #start(held: Held): void {
    this.#parts.emit("started", { job: held.job });
    const cancelWatch = this.#watchTimeout(held);
    const end = (run: DispatchEnd): void => {
      cancelWatch();
      this.#ended(held, run);
    };
    // A failure of the runner is treated as its handler's failure: it must not end the process and all its neighbours.
    runJob(held, this.#runnerParts).then(end, (error) =>
      end({ kind: "ended", ending: { kind: "threw", error } }),
    );
  }

  #ended(held: Held, run: DispatchEnd): void {
    this.#running.delete(held);
    this.#lookAhead.ran(this.#timing(held).ms, held.job.input.length);
    if (!held.recorded) this.#conclude(held, run);
    this.#ready.refill();
    if (this.#running.size === 0) this.#onIdle?.();
    this.#claimer.settled(held.job.id);
  }

  #conclude(held: Held, run: DispatchEnd): void {
    const { emit, log } = this.#parts;
    if (run.kind === "ended") {
      if (this.#parts.store.capabilities.transactions) this.#withoutEffect.ended(held, run.ending);
      return this.#record(held, this.#decide(held, run.ending));
    }
    held.recorded = true;
    this.#forget(held);
    if (run.late !== null) {
      const facts = { job: held.job.id, error: recordError(run.late) };
      log.warn(facts, "a handler failed after its tx had committed: the job has succeeded");
    }
    if (run.success !== null) warnNotKept(log, held.job, run.success);
    emit("succeeded", { job: held.job, result: run.value, ...this.#timing(held) });
  }

  #decide(held: Held, ending: Ending): Outcome {
    const { settings, runtime } = this.#parts;
    if (ending.kind === "unreadable")
      return this.#unreadable.outcomeOf(held.job, ending.error, runtime.clock.monotonic());
    return decideOutcome(
      ending,
      held.stopCause,
      held.job,
      held.definition,
      runtime.random(),
      settings.maxInputBytes,
    );
  }

  #record(held: Held, outcome: Outcome): void {
    if (held.recorded) return;
    held.recorded = true;
    this.#outbox.add(held, outcome);
    this.#claimer.settled(held.job.id);
  }

  /** A handler that does not settle after its timeout keeps its slot, but not its job: the failure is recorded anyway. */
  #watchTimeout(held: Held): () => void {
    const { runtime, settings, log } = this.#parts;
    const { timeoutMs } = held.definition;
    if (timeoutMs === null) return () => {};
    return runtime.clock.after(timeoutMs + settings.leaseMs, () => {
      if (held.recorded) return;
      const { id: job, name } = held.job;
      log.warn(
        { job, name },
        "a handler has not settled one lease after its timeout; it keeps its slot, and the job has failed",
      );
      // Whatever signal it got before, a timeout ends it: it has not returned.
      held.stopCause = "timeout";
      this.#record(held, this.#decide(held, { kind: "returned", value: undefined }));
    });
  }

  // ── From the outbox ──

  readonly #givenUp = (held: Held): void => {
    this.#forget(held);
    const { id: job, name } = held.job;
    this.#parts.log.error({ job, name }, "the store cannot record an outcome; the lease will expire");
  };

  readonly #written = (held: Held, outcome: Outcome, result: FinishResult): void => {
    this.#forget(held);
    if (result.state === "succeeded") warnNotKept(this.#parts.log, held.job, outcome);
    announce(this.#parts.emit, held.job, outcome, result, this.#timing(held));
  };

  #keep(held: Held): void {
    this.#heartbeat?.keep(asRenewal(held));
    held.keptSinceMs = this.#parts.runtime.clock.monotonic();
  }

  #forget(held: Held): void {
    if (this.#held.get(held.job.id) === held) this.#held.delete(held.job.id);
    this.#heartbeat?.drop(held.job);
  }

  #timing(held: Held): Timing {
    return held.timingAt(this.#parts.runtime.clock.monotonic());
  }

  // ── From the heartbeat and the store's notices ──

  #startHeartbeat(): Heartbeat {
    return startHeartbeat({
      ...this.#parts,
      onRenewed: this.#renewed,
      onStale: (claims) => this.#stopEach(claims.filter(this.#mayBeLost), "lease-lost", "the lease ran out"),
      onCancel: this.#cancelled,
      onReplaced: (heartbeat) => {
        this.#heartbeat = heartbeat;
        for (const held of this.#held.values()) if (held.isKept) this.#keep(held);
      },
    });
  }

  readonly #renewed = (claims: readonly ClaimRef[], sentAtMs: number): void => {
    const { leaseMs } = this.#parts.settings;
    for (const { id, token } of claims) {
      const held = this.#held.get(id);
      if (held?.job.token === token) held.safeUntilMs = Math.max(held.safeUntilMs, sentAtMs + leaseMs);
    }
  };

  /** Not while its `tx`, or its outcome, may have ended the claim; should that fail after all, the watch stops the handler in time. */
  readonly #mayBeLost = ({ id }: ClaimRef): boolean => this.#held.get(id)?.isUnderWay === true;

  #stopEach(claims: readonly ClaimRef[], cause: "lease-lost" | "cancelled", message: string): void {
    for (const { id, token } of claims) {
      const held = this.#held.get(id);
      if (held?.job.token !== token || !held.stop(cause, message)) continue;
      if (cause === "lease-lost") this.#parts.emit("leaseLost", { job: held.job });
    }
    this.#ready.giveBack((held) => held.stopCause !== null);
  }

  readonly #cancelled = (claims: readonly ClaimRef[]): void =>
    this.#stopEach(claims, "cancelled", "the job was cancelled");

  readonly #notice = (notice: Notice): void => {
    // This process may have claimed ahead from a queue that is now paused or limited. However often that changes, other jobs run meanwhile.
    if (notice.kind === "queues" && this.#ready.giveBack(() => true) > 0) this.#lookAhead.stalled();
    if (notice.kind === "jobs" || notice.kind === "queues" || notice.kind === "ended")
      this.#claimer.requestClaim();
    if (notice.kind === "cancel")
      void cancelledAmong(this.#parts.store, this.#held, notice.ids).then(this.#cancelled);
  };

  /** Stops handlers whose lease could not be renewed, before it ends: afterwards another process may run them. */
  #watch(): void {
    const { runtime, settings, emit } = this.#parts;
    const nowMs = runtime.clock.monotonic();
    this.#heartbeat?.pulse();
    for (const held of this.#running) {
      const renewedAtMs = this.#heartbeat?.renewedAtMs(held.keptSinceMs) ?? null;
      if (renewedAtMs !== null) held.safeUntilMs = Math.max(held.safeUntilMs, renewedAtMs + settings.leaseMs);
      if (held.transaction === "committed" || nowMs < held.safeUntilMs - safetyMarginMs(settings.leaseMs))
        continue;
      if (held.stop("lease-lost", "the lease could not be renewed in time"))
        emit("leaseLost", { job: held.job });
    }
    this.#cancelWatch = runtime.clock.after(settings.leaseMs / 10, () => this.#watch());
  }

  #idle(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#onIdle = null;
        resolve();
      };
      const cancel = this.#parts.runtime.clock.after(timeoutMs, done);
      this.#onIdle = done;
    });
  }
}
