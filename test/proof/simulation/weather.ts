import { Chance } from "../../../src/testing/chance.ts";

/** How bad it gets. Probabilities are per store call; rates are per second over the whole cluster. */
export interface Climate {
  readonly name: string;
  readonly refuse: number;
  readonly loseReply: number;
  /** The store does the first part of a batch, and then fails: as one that is spread over several servers may. */
  readonly doPart: number;
  readonly crashAtCall: number;
  readonly longDelay: number;
  /** Of a handler, at each of its awaits. */
  readonly crashAtWork: number;
  /** What happens to whole processes, by weight. */
  readonly events: Readonly<Record<ClusterEvent, number>>;
  /** The mean time between two of them. */
  readonly everyMs: number;
}

/** An outage cuts one process off, a blackout all of them. */
export type ClusterEvent = "crash" | "pause" | "outage" | "blackout" | "stop" | "step-clock";

const still: Climate = {
  name: "calm",
  refuse: 0,
  loseReply: 0,
  doPart: 0,
  crashAtCall: 0,
  longDelay: 0,
  crashAtWork: 0,
  events: { crash: 0, pause: 0, outage: 0, blackout: 0, stop: 0, "step-clock": 1 },
  everyMs: 10_000,
};
const none = still.events;

const climates: readonly Climate[] = [
  still,
  {
    ...still,
    name: "crashes",
    crashAtCall: 0.01,
    crashAtWork: 0.01,
    events: { ...none, crash: 1 },
    everyMs: 8_000,
  },
  { ...still, name: "pauses", events: { ...none, pause: 1 }, everyMs: 6_000 },
  { ...still, name: "network", refuse: 0.06, loseReply: 0.06, doPart: 0.04, longDelay: 0.02 },
  { ...still, name: "outages", loseReply: 0.02, events: { ...none, outage: 1 }, everyMs: 6_000 },
  { ...still, name: "blackouts", events: { ...none, blackout: 1 }, everyMs: 5_000 },
  { ...still, name: "stops", refuse: 0.03, loseReply: 0.05, events: { ...none, stop: 1 }, everyMs: 5_000 },
  {
    name: "all",
    refuse: 0.03,
    loseReply: 0.03,
    doPart: 0.02,
    crashAtCall: 0.004,
    longDelay: 0.01,
    crashAtWork: 0.004,
    events: { crash: 2, pause: 2, outage: 2, blackout: 1, stop: 2, "step-clock": 1 },
    everyMs: 6_000,
  },
  {
    name: "storm",
    refuse: 0.1,
    loseReply: 0.1,
    doPart: 0.05,
    crashAtCall: 0.015,
    longDelay: 0.03,
    crashAtWork: 0.01,
    events: { crash: 2, pause: 2, outage: 2, blackout: 1, stop: 2, "step-clock": 1 },
    everyMs: 3_000,
  },
];

/** What the seed does to one call. */
export type CallFault =
  | "none"
  | "refuse"
  | "lose"
  | "part"
  | "crash-before"
  | "crash-between"
  | "crash-after";

export interface CallPlan {
  readonly fault: CallFault;
  readonly thereMs: number;
  readonly backMs: number;
}

/** The one thing that goes wrong in a run: the death of a process at its cluster's n-th await, of a call or in a handler. */
export interface CrashPoint {
  readonly await: number;
  readonly fault: "crash-before" | "crash-between" | "crash-after";
}

/** Decides what goes wrong. When it is quiet, nothing does. */
export class Weather {
  readonly climate: Climate;
  readonly leaseMs: number;
  quiet = false;
  /** The store answers nobody until it is resolved; null when it does. */
  blackout: Promise<void> | null = null;
  /** How many awaits there were at which a process may die: its calls, and those of its handlers. */
  awaits = 0;
  readonly #crashPoint: CrashPoint | null;

  constructor(seed: number, leaseMs: number, crashPoint: CrashPoint | null) {
    this.climate = crashPoint === null ? new Chance(seed, "climate").pick(climates) : still;
    this.leaseMs = leaseMs;
    this.#crashPoint = crashPoint;
  }

  call(chance: Chance, mayCrash: boolean): CallPlan {
    if (mayCrash) this.awaits += 1;
    const planned = mayCrash && this.awaits === this.#crashPoint?.await ? this.#crashPoint.fault : null;
    return {
      fault: planned ?? (this.quiet ? "none" : this.#fault(chance, mayCrash)),
      thereMs: this.#delayMs(chance),
      backMs: this.#delayMs(chance),
    };
  }

  crashesAtWork(chance: Chance): boolean {
    this.awaits += 1;
    if (this.awaits === this.#crashPoint?.await) return true;
    return !this.quiet && chance.happens(this.climate.crashAtWork);
  }

  #fault(chance: Chance, mayCrash: boolean): CallFault {
    const { refuse, loseReply, doPart, crashAtCall } = this.climate;
    let dice = chance.next();
    for (const [fault, probability] of [
      ["refuse", refuse],
      ["lose", loseReply],
      ["part", doPart],
      ["crash-before", mayCrash ? crashAtCall / 3 : 0],
      ["crash-between", mayCrash ? crashAtCall / 3 : 0],
      ["crash-after", mayCrash ? crashAtCall / 3 : 0],
    ] as const) {
      dice -= probability;
      if (dice < 0) return fault;
    }
    return "none";
  }

  #delayMs(chance: Chance): number {
    if (!this.quiet && chance.happens(this.climate.longDelay)) return chance.real(0.1, 1.3) * this.leaseMs;
    return chance.real(0.1, 15);
  }
}
