import type { Outcome } from "../state.ts";
import type { Finish, FinishResult } from "../store.ts";
import type { Held } from "./held.ts";

interface Entry {
  readonly held: Held;
  readonly outcome: Outcome;
}

/**
 * Outcomes that are not written yet. Each stays until the store has answered: an outage shorter than the lease must not make
 * finished work run again.
 */
export class Outbox {
  readonly #onWritten: (held: Held, outcome: Outcome, result: FinishResult) => void;
  readonly #flushReports: () => Promise<void>;
  #waiting: Entry[] = [];
  #sent: Entry[] = [];
  /** How many outcomes one trip takes. */
  #most = Number.POSITIVE_INFINITY;

  constructor(
    onWritten: (held: Held, outcome: Outcome, result: FinishResult) => void,
    flushReports: () => Promise<void>,
  ) {
    this.#onWritten = onWritten;
    this.#flushReports = flushReports;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#sent.length === 0;
  }

  add(held: Held, outcome: Outcome): void {
    this.#waiting.push({ held, outcome });
  }

  /** What jobs reported must be in the store before their outcomes are. */
  beforeTrip(): Promise<void> {
    return this.#flushReports();
  }

  take(): Finish[] {
    this.#sent = this.#waiting.splice(0, this.#most);
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
