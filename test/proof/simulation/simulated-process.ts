import type { Clock } from "../../../src/clock.ts";
import type { Runtime } from "../../../src/runtime/runtime.ts";
import type { Chance } from "../../../src/testing/chance.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";

interface Delivery {
  readonly kind: "timer" | "io";
  readonly callback: () => void;
}

/** A promise that nobody will ever settle: what a dead process waits for. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

/** How long a process that was woken takes for each thing that piled up meanwhile. */
const catchUpMs = 0.001;

/**
 * One life of one process. Whatever reaches it, a timer or an answer, passes through `deliver`: nothing does once it is dead, and
 * while it is paused everything waits, as it does for a process that the system has stopped.
 */
export class SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly runtime: Runtime;
  alive = true;
  paused = false;
  /** The id under which its worker claims, once it has. */
  claimer: string | null = null;
  /** Resolves when it is dead. */
  readonly death: Promise<void>;
  /** Told at its death, which may come from anywhere: a call, a handler, the weather. */
  onCrash: (why: string) => void = () => {};
  readonly #die: () => void;
  readonly #world: VirtualClock;
  readonly #chance: Chance;
  #backlog: Delivery[] = [];
  /** How far its wall clock is off. */
  #skewMs: number;

  constructor(name: string, world: VirtualClock, chance: Chance) {
    this.name = name;
    this.#world = world;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.death = promise;
    this.#die = resolve;
    this.#chance = chance;
    this.#skewMs = chance.integer(-300_000, 300_000);
    this.clock = this.#makeClock(chance.integer(0, 1_000_000));
    let ids = 0;
    this.runtime = {
      clock: this.clock,
      random: chance.next,
      newId: () => {
        ids += 1;
        return `${name}-${String(ids).padStart(4, "0")}`;
      },
    };
  }

  deliver(kind: Delivery["kind"], callback: () => void): void {
    if (!this.alive) return;
    if (this.paused) this.#backlog.push({ kind, callback });
    else callback();
  }

  crash(why: string): void {
    if (!this.alive) return;
    this.exit();
    this.onCrash(why);
  }

  /** Ends it without a word. */
  exit(): void {
    this.alive = false;
    this.#die();
    this.#backlog = [];
  }

  pause(): void {
    this.paused = true;
  }

  /** What piled up comes in one burst: timers in their order, answers in theirs, and which of the two is first is chance. */
  resume(): void {
    const timers = this.#backlog.filter(({ kind }) => kind === "timer");
    const io = this.#backlog.filter(({ kind }) => kind === "io");
    const merged: Delivery[] = [];
    while (timers.length > 0 && io.length > 0) {
      const next = (this.#chance.happens(0.5) ? timers : io).shift();
      if (next !== undefined) merged.push(next);
    }
    this.#backlog = [...merged, ...timers, ...io];
    this.#catchUp();
  }

  /** Its wall clock is set, as NTP or an operator does. */
  stepClock(ms: number): void {
    this.#skewMs += ms;
  }

  #catchUp(): void {
    const next = this.#backlog.shift();
    if (next === undefined) {
      this.paused = false;
      return;
    }
    next.callback();
    this.#world.after(catchUpMs, () => {
      if (this.alive) this.#catchUp();
    });
  }

  #makeClock(bootMs: number): Clock {
    const world = this.#world;
    return {
      now: () => Math.floor(world.now() + this.#skewMs),
      monotonic: () => world.monotonic() + bootMs,
      after: (ms, callback) => {
        let cancelled = false;
        const fire = (): void => {
          if (!cancelled) callback();
        };
        const cancel = world.after(ms, () => this.deliver("timer", fire));
        return () => {
          cancelled = true;
          cancel();
        };
      },
      defer: (callback) => world.defer(() => this.deliver("io", callback)),
    };
  }
}

/** The store's own clock: right, and in whole milliseconds of wall time, as databases have it. */
export function storeClock(world: VirtualClock): Clock {
  return {
    now: () => Math.floor(world.now()),
    monotonic: () => world.monotonic(),
    after: (ms, callback) => world.after(ms, callback),
    defer: (callback) => world.defer(callback),
  };
}
