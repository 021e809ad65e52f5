import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { Report } from "../store/claims.ts";
import { maxTrailLength } from "../store/questions.ts";
import type { Store } from "../store/store.ts";
import type { Held } from "./held.ts";
import { logLine } from "./log-line.ts";
import { encodeKept } from "./outcome.ts";

const flushMs = 200;
const maxLineLength = 2_000;
const maxProgressBytes = 65_536;

interface PendingReport {
  readonly held: Held;
  progress?: string;
  lines: string[];
}

/**
 * Carries progress and log lines of running jobs to the store in batches, so a chatty handler costs no trip per line.
 */
export class Reporter {
  readonly #store: Store;
  readonly #claimer: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onError: (error: unknown) => void;
  readonly #warned = new WeakSet<Held>();
  #pending = new Map<string, PendingReport>();
  /** Whose reports are on their way to the store. */
  #sent: ReadonlySet<Held> = new Set();
  /** Whose reports stay here, for their transactions to write. */
  readonly #withheld = new Set<Held>();
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();
  /** The write that takes what has accumulated once the one before it is answered. */
  #next: Promise<void> | null = null;

  constructor(store: Store, claimer: string, clock: Clock, log: Logger, onError: (error: unknown) => void) {
    this.#store = store;
    this.#claimer = claimer;
    this.#clock = clock;
    this.#log = log;
    this.#onError = onError;
  }

  /** What is not JSON, or is too large, is left out: bad progress must not fail a job. */
  progress(held: Held, value: unknown): void {
    if (!held.mayReport) return;
    const kept = encodeKept(value, maxProgressBytes);
    if (typeof kept === "object") this.#warn(held, kept.why);
    else if (kept !== undefined) this.#of(held).progress = kept;
  }

  /** Once for each run of a job: what cannot be kept once is likely to come again. */
  #warn(held: Held, why: string): void {
    if (this.#warned.has(held)) return;
    this.#warned.add(held);
    const { id, name } = held.job;
    this.#log.warn({ job: id, name }, `progress of job ${JSON.stringify(id)} is not kept: ${why}`);
  }

  line(held: Held, line: unknown): void {
    if (!held.mayReport) return;
    const { lines } = this.#of(held);
    // Cut in the middle of a character, it would not be a string that every store can keep.
    lines.push(logLine(line).slice(0, maxLineLength).toWellFormed());
    if (lines.length > maxTrailLength) lines.shift();
  }

  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#sent.size === 0;
  }

  /**
   * Whether the store has answered everything that this job reported. Only then may its outcome be sent: afterwards its
   * reports are stale.
   */
  isWritten(held: Held): boolean {
    return this.#pending.get(held.job.id)?.held !== held && !this.#sent.has(held);
  }

  /** Writes what has accumulated; resolves when everything that was reported before is written. */
  flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#pending.size === 0) return this.#writing;
    // One after the other: on two connections at once, an older progress could overtake a newer one.
    this.#next ??= this.#writing.then(() => {
      this.#next = null;
      return this.#write();
    });
    this.#writing = this.#next;
    return this.#writing;
  }

  /**
   * Holds back what this job reports from now on, for the commit that ends it: sent beside that, it might arrive too
   * late. Resolves when what was sent before is written.
   */
  async withhold(held: Held): Promise<void> {
    this.#withheld.add(held);
    while (this.#sent.has(held)) await this.#writing;
  }

  /** Its reports are sent again as they come. */
  release(held: Held): void {
    this.#withheld.delete(held);
    if (this.#pending.get(held.job.id)?.held === held) this.#setTimer();
  }

  /** What has accumulated for this job, for another writer to write. */
  take(held: Held): Report | null {
    const pending = this.#pending.get(held.job.id);
    if (pending?.held !== held) return null;
    this.#pending.delete(held.job.id);
    return contentOf(pending);
  }

  /** Takes back what could not be written elsewhere; what came meanwhile comes after it. */
  putBack(held: Held, { progress, lines }: Report): void {
    if (!held.mayReport) return;
    const pending = this.#of(held);
    pending.lines = [...lines, ...pending.lines].slice(-maxTrailLength);
    if (progress !== undefined) pending.progress ??= progress;
  }

  async #write(): Promise<void> {
    // A job whose outcome is decided ends with that, whatever its transaction still does.
    const isKeptBack = ({ held }: PendingReport): boolean => this.#withheld.has(held) && !held.recorded;
    const all = [...this.#pending];
    const pending = all.flatMap(([, one]) => (isKeptBack(one) ? [] : [one]));
    this.#pending = new Map(all.filter(([, one]) => isKeptBack(one)));
    if (pending.length === 0) return;
    const reports = pending.map((one) => ({
      id: one.held.job.id,
      token: one.held.job.token,
      ...contentOf(one),
    }));
    this.#sent = new Set(pending.map(({ held }) => held));
    try {
      await this.#store.report({ claimer: this.#claimer, reports });
    } catch (error) {
      // Reports are not worth a retry that could delay an outcome; the job itself is not touched.
      this.#onError(error);
    } finally {
      this.#sent = new Set();
    }
  }

  #of(held: Held): PendingReport {
    const known = this.#pending.get(held.job.id);
    if (known !== undefined && known.held === held) return known;
    const report: PendingReport = { held, lines: [] };
    this.#pending.set(held.job.id, report);
    this.#setTimer();
    return report;
  }

  #setTimer(): void {
    this.#cancelTimer ??= this.#clock.after(flushMs, () => void this.flush());
  }
}

function contentOf({ progress, lines }: PendingReport): Report {
  return { lines, ...(progress === undefined ? {} : { progress }) };
}
