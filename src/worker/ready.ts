import type { Clock } from "../clock.ts";
import type { Held } from "./held.ts";

/** How long a job waits for room before it is given back: longer than expected when it was claimed. */
const longestWaitMs = 100;
/** How long handlers may follow each other before the loop turns. */
const longestTurnMs = 1;

export interface ReadyParts {
  readonly clock: Clock;
  /** For how many more there is room now. */
  room(): number;
  mayStart(held: Held): boolean;
  start(jobs: readonly Held[]): void;
  giveBack(held: Held): void;
  /** Some had to be given back because there was no room for them in time. */
  onStall(): void;
}

/** Jobs that were claimed and wait here for room, in the order in which they were claimed. */
export class Ready {
  readonly #parts: ReadyParts;
  #waiting: Held[] = [];
  /** How many of the first are gone. */
  #gone = 0;
  /** When handlers began to follow each other in this turn of the loop; null when none did. */
  #turnedAtMs: number | null = null;
  #cancelWatch: (() => void) | null = null;

  constructor(parts: ReadyParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#waiting.length - this.#gone;
  }

  add(held: Held): void {
    this.#waiting.push(held);
  }

  /** Starts as many as there is room for. */
  fill(): void {
    const { room, mayStart, start, giveBack } = this.#parts;
    const started: Held[] = [];
    const most = room();
    while (started.length < most) {
      const held = this.#next();
      if (held === undefined) break;
      if (mayStart(held)) started.push(held);
      else giveBack(held);
    }
    if (started.length > 0) start(started);
    this.#watch();
  }

  /**
   * Fills up again after a job has ended; sometimes only after the loop has turned, so outcomes can leave while
   * others run.
   */
  refill(): void {
    if (this.size === 0) return;
    const { clock } = this.#parts;
    const now = clock.monotonic();
    if (this.#turnedAtMs === null) {
      this.#turnedAtMs = now;
      clock.defer(() => {
        this.#turnedAtMs = null;
        this.fill();
      });
    }
    if (now - this.#turnedAtMs < longestTurnMs) this.fill();
  }

  /** Gives back those for which it holds. Returns how many. */
  giveBack(holds: (held: Held) => boolean): number {
    const given: Held[] = [];
    const left: Held[] = [];
    for (const held of this.#waiting.slice(this.#gone)) (holds(held) ? given : left).push(held);
    this.#waiting = left;
    this.#gone = 0;
    for (const held of given) this.#parts.giveBack(held);
    return given.length;
  }

  stop(): void {
    this.giveBack(() => true);
    this.#cancelWatch?.();
    this.#cancelWatch = null;
  }

  #next(): Held | undefined {
    const held = this.#waiting[this.#gone];
    if (held === undefined) return undefined;
    this.#gone += 1;
    // The list is trimmed from time to time, so taking the first one costs nothing.
    if (this.#gone === this.#waiting.length || this.#gone > 1_000) {
      this.#waiting = this.#waiting.slice(this.#gone);
      this.#gone = 0;
    }
    return held;
  }

  /** Jobs for which there is no room in time are left to others. */
  #watch(): void {
    const { clock, onStall } = this.#parts;
    if (this.size === 0 || this.#cancelWatch !== null) return;
    this.#cancelWatch = clock.after(longestWaitMs, () => {
      this.#cancelWatch = null;
      const before = clock.monotonic() - longestWaitMs;
      if (this.giveBack(({ claimedAtMs }) => claimedAtMs <= before) > 0) onStall();
      this.#watch();
    });
  }
}
