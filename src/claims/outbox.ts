import type { Outcome } from "../state.ts";
import type { ClaimRef, Finish, FinishResult } from "../store/claims.ts";

/** A job that this process holds, as a worker or a relay keeps it. */
interface Holding {
  readonly job: ClaimRef;
}

/** One decided outcome. */
export interface Entry<H extends Holding> {
  readonly held: H;
  readonly outcome: Outcome;
}

/** Outcomes that travel together. */
export interface Sending<H extends Holding> {
  readonly finishes: readonly Finish[];
  readonly entries: readonly Entry<H>[];
}

/** What jobs reported, which must be in the store before their outcomes are. */
export interface Reports<H extends Holding> {
  /** No report of any job is waiting to be written. */
  readonly isIdle: boolean;
  isWritten(held: H): boolean;
  flush(): Promise<void>;
}

export interface OutboxParts<H extends Holding> {
  onWritten(held: H, outcome: Outcome, result: FinishResult): void;
  /** Null if jobs report nothing. */
  readonly reports: Reports<H> | null;
}

/**
 * Outcomes that are not written yet. Each stays until the store has answered: an outage must not make finished work
 * run again.
 */
export class Outbox<H extends Holding> {
  readonly #parts: OutboxParts<H>;
  #waiting: Entry<H>[] = [];
  /** Sent and not answered. Anything that is not among these was answered, and is not sent again. */
  readonly #underWay = new Set<Sending<H>>();
  /** How many outcomes one trip takes. */
  #most = Number.POSITIVE_INFINITY;

  constructor(parts: OutboxParts<H>) {
    this.#parts = parts;
  }

  /** Everything is written. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#underWay.size === 0;
  }

  /** How many wait to be sent. */
  get waiting(): number {
    return this.#waiting.length;
  }

  add(held: H, outcome: Outcome): void {
    this.#waiting.push({ held, outcome });
  }

  /** Whether a job among those waiting has reported something that the store does not have yet. */
  get owesReports(): boolean {
    const { reports } = this.#parts;
    return reports !== null && !reports.isIdle && this.#waiting.some(({ held }) => !reports.isWritten(held));
  }

  async writeReports(): Promise<void> {
    await this.#parts.reports?.flush();
  }

  /**
   * What goes with the next trip. Outcomes that arrived while reports were being written, and have reports of their
   * own, go with the trip after it.
   */
  take(): Sending<H> {
    const { reports } = this.#parts;
    const late: Entry<H>[] = [];
    let ready = this.#waiting;
    if (reports !== null && !reports.isIdle) {
      ready = [];
      for (const entry of this.#waiting) (reports.isWritten(entry.held) ? ready : late).push(entry);
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

  /** The store did not answer: send the same again, before what has arrived since. */
  putBack(sending: Sending<H>): void {
    if (this.#underWay.delete(sending)) this.#waiting = [...sending.entries, ...this.#waiting];
  }

  /**
   * The store refused what was sent, and would refuse it again. Half of it is retried, and so on until the outcome that
   * cannot be written is alone; that one is dropped, so it does not block the others, and returned.
   */
  narrow(sending: Sending<H>): H | null {
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

  written(sending: Sending<H>, results: readonly FinishResult[]): void {
    this.#underWay.delete(sending);
    this.#most *= 2;
    for (const [index, { held, outcome }] of sending.entries.entries()) {
      const result = results[index];
      if (result !== undefined) this.#parts.onWritten(held, outcome, result);
    }
  }

  /** Takes out those waiting entries that match: their outcomes no longer apply. */
  withdraw(matches: (held: H) => boolean): H[] {
    const { withdrawn = [], kept = [] } = Object.groupBy(this.#waiting, ({ held }) =>
      matches(held) ? "withdrawn" : "kept",
    );
    this.#waiting = kept;
    return withdrawn.map(({ held }) => held);
  }
}
