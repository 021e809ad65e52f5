import type { Clock } from "../clock.ts";
import { maxTrailLength, type ReportParams, type Store } from "../store.ts";
import type { Held } from "./held.ts";
import { succeedWith } from "./outcome.ts";

const flushMs = 200;
const maxLineLength = 2_000;
const maxProgressBytes = 65_536;

interface Report {
  readonly held: Held;
  progress?: string;
  lines: string[];
}

/** Carries progress and log lines of running jobs to the store, gathered, so that a chatty handler costs no trip per line. */
export class Reporter {
  readonly #store: Store;
  readonly #claimer: string;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #gathered = new Map<string, Report>();
  /** Whose reports are on their way to the store. */
  #sent: ReadonlySet<Held> = new Set();
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();
  /** The write that takes what has gathered once the one before it is answered. */
  #next: Promise<void> | null = null;

  constructor(store: Store, claimer: string, clock: Clock, onError: (error: unknown) => void) {
    this.#store = store;
    this.#claimer = claimer;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** What is no JSON, or too large, is left out: how far a job is must not decide whether it fails. */
  progress(held: Held, value: unknown): void {
    const text = succeedWith(value, maxProgressBytes).result;
    if (text !== null && held.mayReport) this.#of(held).progress = text;
  }

  line(held: Held, line: string): void {
    if (!held.mayReport) return;
    const { lines } = this.#of(held);
    // Cut in the middle of a character, it would be no text that every store can keep.
    lines.push(String(line).slice(0, maxLineLength).toWellFormed());
    if (lines.length > maxTrailLength) lines.shift();
  }

  get isIdle(): boolean {
    return this.#gathered.size === 0 && this.#sent.size === 0;
  }

  /** Whether the store has answered everything that this job reported. Only then may its outcome be sent: afterwards its reports are stale. */
  isWritten(held: Held): boolean {
    return this.#gathered.get(held.job.id)?.held !== held && !this.#sent.has(held);
  }

  /** Writes what has gathered; resolves when everything that was reported before is written. */
  flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#gathered.size === 0) return this.#writing;
    // One after the other: on two connections at once, an older progress could overtake a newer one.
    this.#next ??= this.#writing.then(() => {
      this.#next = null;
      return this.#write();
    });
    this.#writing = this.#next;
    return this.#writing;
  }

  async #write(): Promise<void> {
    const gathered = [...this.#gathered.values()];
    const reports: ReportParams["reports"] = gathered.map(({ held, progress, lines }) => ({
      id: held.job.id,
      token: held.job.token,
      lines,
      ...(progress === undefined ? {} : { progress }),
    }));
    this.#gathered = new Map();
    this.#sent = new Set(gathered.map(({ held }) => held));
    try {
      await this.#store.report({ claimer: this.#claimer, reports });
    } catch (error) {
      // Reports are not worth a repetition that could delay an outcome; the job itself is not touched.
      this.#onError(error);
    } finally {
      this.#sent = new Set();
    }
  }

  #of(held: Held): Report {
    const known = this.#gathered.get(held.job.id);
    if (known !== undefined && known.held === held) return known;
    const report: Report = { held, lines: [] };
    this.#gathered.set(held.job.id, report);
    this.#cancelTimer ??= this.#clock.after(flushMs, () => void this.flush());
    return report;
  }
}
