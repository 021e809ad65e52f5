import type { Clock } from "../clock.ts";
import type { ReportParams, Store } from "../store.ts";
import type { Held } from "./held.ts";
import { succeedWith } from "./outcome.ts";

const flushMs = 200;
const maxLinesPerFlush = 100;
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
  #reports = new Map<string, Report>();
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();
  readonly #flushed: (error: unknown) => void;

  constructor(store: Store, claimer: string, clock: Clock, onError: (error: unknown) => void) {
    this.#store = store;
    this.#claimer = claimer;
    this.#clock = clock;
    this.#flushed = onError;
  }

  /** What is no JSON, or too large, is left out: how far a job is must not decide whether it fails. */
  progress(held: Held, value: unknown): void {
    const text = succeedWith(value, maxProgressBytes).result;
    if (text !== null) this.#of(held).progress = text;
  }

  line(held: Held, line: string): void {
    const { lines } = this.#of(held);
    // Cut in the middle of a character, it would be no text that every store can keep.
    lines.push(String(line).slice(0, maxLineLength).toWellFormed());
    if (lines.length > maxLinesPerFlush) lines.shift();
  }

  /** Writes what has gathered. It must be called before the outcome of a job is written: afterwards its reports are stale. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    // One that is under way may be on another connection than the outcome.
    if (this.#reports.size === 0) return this.#writing;
    const reports: ReportParams["reports"] = [...this.#reports.values()].map(({ held, progress, lines }) => ({
      id: held.job.id,
      token: held.job.token,
      lines,
      ...(progress === undefined ? {} : { progress }),
    }));
    this.#reports = new Map();
    this.#writing = Promise.all([this.#writing, this.#write(reports)]).then(() => {});
    return this.#writing;
  }

  async #write(reports: ReportParams["reports"]): Promise<void> {
    try {
      await this.#store.report({ claimer: this.#claimer, reports });
    } catch (error) {
      // Reports are not worth a repetition that could delay an outcome; the job itself is not touched.
      this.#flushed(error);
    }
  }

  #of(held: Held): Report {
    const known = this.#reports.get(held.job.id);
    if (known !== undefined && known.held === held) return known;
    const report: Report = { held, lines: [] };
    this.#reports.set(held.job.id, report);
    this.#cancelTimer ??= this.#clock.after(flushMs, () => void this.flush());
    return report;
  }
}
