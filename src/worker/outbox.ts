import type { Outcome } from "../state.ts";
import type { Finish, FinishResult } from "../store.ts";
import type { Held } from "./held.ts";

interface Entry {
  readonly held: Held;
  readonly outcome: Outcome;
}

/** Outcomes that travel together. */
export interface Sending {
  readonly finishes: readonly Finish[];
  readonly entries: readonly Entry[];
}

/** What jobs reported, which must be in the store before their outcomes are. */
export interface Reports {
  /** Nothing is waiting to be written, of no job. */
  readonly isIdle: boolean;
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
  /** What was sent and has not been answered. Whatever is not among these was answered, and is not sent again. */
  readonly #underWay = new Set<Sending>();
  /** How many outcomes one trip takes. */
  #most = Number.POSITIVE_INFINITY;

  constructor(onWritten: (held: Held, outcome: Outcome, result: FinishResult) => void, reports: Reports) {
    this.#onWritten = onWritten;
    this.#reports = reports;
  }

  /** Everything is written. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#underWay.size === 0;
  }

  /** How many wait to be sent. */
  get waiting(): number {
    return this.#waiting.length;
  }

  add(held: Held, outcome: Outcome): void {
    this.#waiting.push({ held, outcome });
  }

  /** Whether a job among those waiting has reported something that the store does not have yet. */
  get owesReports(): boolean {
    return !this.#reports.isIdle && this.#waiting.some(({ held }) => !this.#reports.isWritten(held));
  }

  writeReports(): Promise<void> {
    return this.#reports.flush();
  }

  /** What goes with the next trip. Outcomes that came while reports were being written, and have some themselves, go with the one after it. */
  take(): Sending {
    const late: Entry[] = [];
    let ready = this.#waiting;
    if (!this.#reports.isIdle) {
      ready = [];
      for (const entry of this.#waiting) (this.#reports.isWritten(entry.held) ? ready : late).push(entry);
    }
    const entries = ready.length <= this.#most ? ready : ready.slice(0, this.#most);
    this.#waiting = [...ready.slice(entries.length), ...late];
    const finishes = entries.map(({ held, outcome }) => ({
      id: held.job.id,
      token: held.job.token,
      outcome,
    }));
    const sending = { entries, finishes };
    if (entries.length > 0) this.#underWay.add(sending);
    return sending;
  }

  /** The store did not answer: send the same again, before what has come since. */
  putBack(sending: Sending): void {
    if (this.#underWay.delete(sending)) this.#waiting = [...sending.entries, ...this.#waiting];
  }

  /**
   * The store refused what was sent, and would refuse it again. The half of it goes next, and so on until the outcome that cannot be written stands
   * alone; that one is given up, so that it does not keep all the others back, and returned.
   */
  narrow(sending: Sending): Held | null {
    if (!this.#underWay.has(sending)) return null;
    const [only] = sending.entries;
    if (sending.entries.length === 1 && only !== undefined) {
      this.#underWay.delete(sending);
      this.#most = Number.POSITIVE_INFINITY;
      return only.held;
    }
    this.#most = Math.max(1, Math.floor(sending.entries.length / 2));
    this.putBack(sending);
    return null;
  }

  written(sending: Sending, results: readonly FinishResult[]): void {
    this.#underWay.delete(sending);
    this.#most *= 2;
    for (const [index, { held, outcome }] of sending.entries.entries()) {
      const result = results[index];
      if (result !== undefined) this.#onWritten(held, outcome, result);
    }
  }
}
