import type { Clock } from "../clock.ts";
import { EscapementError, isTransient } from "../errors.ts";
import type { DispatchPhase, Events, Timing } from "../events.ts";
import type { JobFacts } from "../job.ts";
import type { QueueDepths } from "../observe/metrics.ts";
import { canary } from "../relay/canary.ts";
import type { Store } from "../store/store.ts";
import {
  type EndKind,
  type EventKind,
  entriesOf,
  HistoryTally,
  type TalliedMinute,
} from "./history-tally.ts";
import { nodeId } from "./presence.ts";

/** How often figures are written, more or less: each process has its own interval, so they do not write in step. */
const everyMs = 10_000;

const retryOf = {
  dispatched_write: "namingRetries",
  publish: "publishRetries",
  rollback_write: "rollbackRetries",
} as const satisfies Record<DispatchPhase, EventKind>;

/** Sent, or about to be. It is repeated as it is until the store answers: what has come since goes with the next. */
interface Flush {
  readonly sequence: number;
  readonly minutes: readonly TalliedMinute[];
}

/**
 * Keeps the history: counts what this process's events report, which come when an outcome is durable, and writes it periodically. Where nothing
 * ended, nothing is written. A process that is killed loses what it has not written.
 */
export class HistoryWriter {
  readonly #clock: Clock;
  readonly #node: string;
  readonly #events: Events;
  readonly #intervalMs: number;
  readonly #tally = new HistoryTally();
  readonly #open: () => Promise<Store>;
  #sequence = 0;
  #flush: Flush | null = null;
  #failures = 0;
  #isStopping = false;
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();

  /** @param open opens the store, or returns the one that is open. */
  constructor(events: Events, clock: Clock, node: string, open: () => Promise<Store>) {
    this.#open = open;
    this.#clock = clock;
    this.#node = node;
    this.#events = events;
    this.#intervalMs = everyMs * (0.75 + fractionOf(node) / 2);
    for (const kind of ["succeeded", "failed", "dead"] as const)
      events.count(kind, ({ job, ms, lateMs }) => this.#ran(kind, job, { ms, lateMs }));
    for (const kind of ["crashed", "lost", "cancelled"] as const)
      events.count(kind, ({ job }) => this.#ended(kind, job));
    events.count("published", ({ job, lateMs }) => this.#dispatched(job, lateMs));
    events.count("enqueued", ({ outcome, ...job }) => {
      if (outcome === "existing" || outcome === "absorbed") this.#happened(outcome, job);
    });
    events.count("stale", ({ job }) => this.#happened("stale", job));
    events.count("dispatchRetry", ({ job, phase }) => this.#happened(retryOf[phase], job));
    events.count("reaped", (job) => {
      const { state, reason } = job;
      if (state === "dead" || state === "lost" || state === "cancelled") this.#ended(state, job);
      // What was only given back is waiting without a reason.
      else if (state === "waiting" && reason !== null) this.#ended("crashed", job);
    });
  }

  /** Writes what is left. A store that does not take it now never will: the process ends. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelTimer?.();
    await this.#writing;
    await this.#write();
    if (this.#flush === null) await this.#write();
  }

  /** What was due, for each queue and for all. Where nothing is due, nothing is written. */
  keepDepths({ queues }: QueueDepths): void {
    const nowMs = this.#clock.now();
    let all = 0;
    for (const { queue, due } of queues) {
      if (due > 0) this.#tally.waited(nowMs, queue, due);
      all += due;
    }
    if (all === 0) return;
    this.#tally.waited(nowMs, "", all);
    this.#arm();
  }

  #ran(kind: EndKind, job: JobFacts, { ms, lateMs }: Timing): void {
    const ranHere = lateMs !== null;
    if (ranHere) this.#dispatched(job, lateMs);
    this.#ended(kind, job, ranHere ? ms : null);
  }

  #ended(
    kind: EndKind,
    { queue, name }: Pick<JobFacts, "queue" | "name">,
    runMs: number | null = null,
  ): void {
    if (name === canary.name) return;
    this.#tally.ended(this.#clock.now(), queue, name, kind, runMs);
    this.#arm();
  }

  #happened(kind: EventKind, { queue, name }: Pick<JobFacts, "queue" | "name">): void {
    if (name === canary.name) return;
    this.#tally.happened(this.#clock.now(), queue, name, kind);
    this.#arm();
  }

  #dispatched({ queue, name }: JobFacts, lateMs: number): void {
    if (name === canary.name) return;
    // After a takeover nothing may be known of the store's clock.
    if (Number.isFinite(lateMs)) this.#tally.dispatched(this.#clock.now(), queue, name, lateMs);
    this.#arm();
  }

  #arm(): void {
    if (this.#isStopping) return;
    this.#cancelTimer ??= this.#clock.after(this.#intervalMs, () => {
      this.#writing = this.#write().finally(() => {
        this.#cancelTimer = null;
        if (this.#flush !== null || !this.#tally.isEmpty) this.#arm();
      });
    });
  }

  async #write(): Promise<void> {
    const flush = this.#next();
    if (flush === null) return;
    const entries = entriesOf(flush.minutes, this.#clock.now());
    try {
      const store = await this.#open();
      await store.recordHistory({ node: this.#node, sequence: flush.sequence, entries });
      this.#flush = null;
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      // An entry that the store cannot take must not block the others.
      if (!(error instanceof EscapementError) || !error.code.startsWith("store-")) this.#flush = null;
      if (!isTransient(error) || this.#failures === 1)
        this.#events.emit("error", { error, during: "writing the history" });
    }
  }

  #next(): Flush | null {
    if (this.#flush !== null || this.#tally.isEmpty) return this.#flush;
    this.#sequence += 1;
    this.#flush = { sequence: this.#sequence, minutes: this.#tally.take() };
    return this.#flush;
  }
}

/**
 * From 0 to 1, by the random part of a node's id: where chance comes from a seed, a draw here would change all later draws, and the host and
 * the pid in the id would make two runs of that seed differ.
 */
function fractionOf(node: string): number {
  let hash = 0;
  for (const character of node.slice(nodeId("").length))
    hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000;
  return hash / 1_000;
}
