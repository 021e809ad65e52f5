import type { Outcome } from "../state.ts";
import type { Finish, FinishResult } from "../store.ts";
import type { Held } from "./held.ts";

interface Entry {
  readonly held: Held;
  readonly outcome: Outcome;
}

/** What jobs reported, which must be in the store before their outcomes are. */
export interface Reports {
  isWritten(held: Held): boolean;
  flush(): Promise<void>;
}

/**
 * Outcomes that are not written yet. Each stays until the store has answered: an outage must not make finished work run again.
 */
export class Outbox {
  readonly #onWritten: (held: Held, outcome: Outcome, result: FinishResult) => void;
  readonly #reports: Reports;
  #waiting: Entry[] = [];
  #sent: Entry[] = [];
  /** How many outcomes one trip takes. */
  #most = Number.POSITIVE_INFINITY;

  constructor(onWritten: (held: Held, outcome: Outcome, result: FinishResult) => void, reports: Reports) {
    this.#onWritten = onWritten;
    this.#reports = reports;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#sent.length === 0;
  }

  add(held: Held, outcome: Outcome): void {
    this.#waiting.push({ held, outcome });
  }

  /** Whether a job among those waiting has reported something that the store does not have yet. */
  get owesReports(): boolean {
    return this.#waiting.some(({ held }) => !this.#reports.isWritten(held));
  }

  writeReports(): Promise<void> {
    return this.#reports.flush();
  }

  /** What goes with the next trip. Outcomes that came while reports were being written, and have some themselves, go with the one after it. */
  take(): Finish[] {
    const late = this.#waiting.filter(({ held }) => !this.#reports.isWritten(held));
    if (late.length > 0) this.#waiting = this.#waiting.filter((entry) => !late.includes(entry));
    this.#sent = this.#waiting.splice(0, this.#most);
    this.#waiting.push(...late);
    return this.#sent.map(({ held, outcome }) => ({ id: held.job.id, token: held.job.token, outcome }));
  }

  /** The store did not answer: send the same again, before what has come since. */
  putBack(): void {
    this.#waiting = [...this.#sent, ...this.#waiting];
    this.#sent = [];
  }

  /**
   * The store refused what was sent, and would refuse it again. The half of it goes next, and so on until the outcome that cannot be written stands
   * alone; that one is given up, so that it does not keep all the others back, and returned.
   */
  narrow(): Held | null {
    const [only] = this.#sent;
    if (this.#sent.length === 1 && only !== undefined) {
      this.#sent = [];
      this.#most = Number.POSITIVE_INFINITY;
      return only.held;
    }
    this.#most = Math.max(1, Math.floor(this.#sent.length / 2));
    this.putBack();
    return null;
  }

  written(results: readonly FinishResult[]): void {
    const sent = this.#sent;
    this.#sent = [];
    this.#most *= 2;
    for (const [index, { held, outcome }] of sent.entries()) {
      const result = results[index];
      if (result !== undefined) this.#onWritten(held, outcome, result);
    }
  }
}
