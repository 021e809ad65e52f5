import assert from "node:assert";
import type { Clock } from "../clock.ts";

interface Timer {
  readonly dueAt: number;
  readonly owner: object | null;
  readonly callback: () => void;
}

/** Taken when this module is loaded: the fake timers of a test runner must not stop a clock that has nothing to do with them. */
const { setImmediate } = globalThis;

/** A defer that defers itself again without end would hang a test; this many rounds are no honest work. */
const maxRounds = 100_000;

/**
 * A clock that stands still until it is told to move, so that tests need no sleeps and simulations replay.
 *
 * @example
 * const clock = new VirtualClock();
 * clock.after(60_000, () => console.log("a minute later"));
 * await clock.advance(3_600_000);
 */
export class VirtualClock implements Clock {
  #monotonicMs = 0;
  #offsetMs: number;
  /** By dueAt, then in the order of their making. */
  readonly #timers: Timer[] = [];
  readonly #deferred: (() => void)[] = [];
  readonly #awaited = new Set<Promise<unknown>>();
  #advancing: Promise<unknown> = Promise.resolve();

  /** @param start the wall time to begin with. */
  constructor(start: Date = new Date("2026-01-01T00:00:00.000Z")) {
    this.#offsetMs = start.getTime();
  }

  now(): number {
    return this.#offsetMs + this.#monotonicMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  after(ms: number, callback: () => void): () => void {
    return this.#after(ms, callback, null);
  }

  #after(ms: number, callback: () => void, owner: object | null): () => void {
    const timer = { dueAt: this.#monotonicMs + Math.max(ms, 0), owner, callback };
    const place = this.#timers.findLastIndex((other) => other.dueAt <= timer.dueAt) + 1;
    this.#timers.splice(place, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  defer(callback: () => void): void {
    this.#deferred.push(callback);
    if (this.#deferred.length === 1) setImmediate(() => this.#runDeferred());
  }

  /** How far away the next timer is, null when there is none. */
  get nextTimerMs(): number | null {
    const next = this.#timers[0];
    return next === undefined ? null : Math.max(0, next.dueAt - this.#monotonicMs);
  }

  /** This clock, with timers that can be told from those of others. */
  as(owner: object): Clock {
    return {
      now: () => this.now(),
      monotonic: () => this.monotonic(),
      after: (ms, callback) => this.#after(ms, callback, owner),
      defer: (callback) => this.defer(callback),
    };
  }

  /** How far away the next timer of anybody else is, null when there is none. */
  nextTimerOfOthersMs(owner: object): number | null {
    const next = this.#timers.find((timer) => timer.owner !== owner);
    return next === undefined ? null : Math.max(0, next.dueAt - this.#monotonicMs);
  }

  /**
   * Moves both clocks by `ms`, firing every timer on the way at its own time; promises settle after each. Calls that overlap move time one
   * after the other.
   */
  advance(ms: number): Promise<void> {
    assert(ms >= 0, `expected to advance by 0 ms or more, got ${ms}`);
    const turn = this.#advancing.then(() => this.#advanceTo(this.#monotonicMs + ms));
    this.#advancing = turn.catch(() => undefined);
    return turn;
  }

  /** Moves both clocks by `ms` at once, as when a machine was suspended: timers that were due meanwhile fire late, in the next advance. */
  skip(ms: number): void {
    assert(ms >= 0, `expected to skip 0 ms or more, got ${ms}`);
    this.#monotonicMs += ms;
  }

  /** Steps the wall clock alone, as an operator or NTP does: now() moves, monotonic() and timers do not. */
  jump(ms: number): void {
    this.#offsetMs += ms;
  }

  /** Time stands still until this has settled: for calls that leave the process, which take real time and no virtual one. */
  standStill(call: Promise<unknown>): void {
    const settled = call.then(
      () => undefined,
      () => undefined,
    );
    this.#awaited.add(settled);
    void settled.then(() => this.#awaited.delete(settled));
  }

  /** Lets promises settle and deferred callbacks run, without moving time. */
  async settle(): Promise<void> {
    for (let round = 0; round < maxRounds; round += 1) {
      while (this.#awaited.size > 0) await Promise.race(this.#awaited);
      // Microtasks are drained before the next macrotask, so one hop settles whatever needs no timer.
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#deferred.length === 0 && this.#awaited.size === 0) return;
    }
    assert.fail("callbacks keep deferring new ones; nothing will ever settle");
  }

  async #advanceTo(target: number): Promise<void> {
    await this.settle();
    let timer = this.#takeDue(target);
    while (timer !== undefined) {
      this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueAt);
      timer.callback();
      await this.settle();
      timer = this.#takeDue(target);
    }
    this.#monotonicMs = target;
  }

  #takeDue(target: number): Timer | undefined {
    const next = this.#timers[0];
    return next !== undefined && next.dueAt <= target ? this.#timers.shift() : undefined;
  }

  #runDeferred(): void {
    for (const callback of this.#deferred.splice(0)) callback();
  }
}
