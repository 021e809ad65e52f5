import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import type { Violation } from "./history.ts";

/** One message as it reached the broker. Times are on the world's monotonic clock. */
export interface Arrival {
  readonly id: string;
  readonly token: number;
  readonly redrives: number;
  readonly body: string;
  readonly process: string;
  readonly at: number;
  /** The store's wall clock. */
  readonly on: number;
  readonly isAccepted: boolean;
}

/** A right to publish, as the store gave it: to this process, for this token of a job. */
export interface Naming {
  readonly id: string;
  readonly token: number;
  readonly process: string;
  readonly partition: number;
  readonly epoch: number;
  readonly runAt: number;
  readonly input: string;
}

/** Everything that happened to a simulated relay, told by broker and store; the invariants are judged from this. */
export class RelayHistory {
  readonly arrivals: Arrival[] = [];
  readonly namings = new Map<string, Naming>();
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  /** Jobs that a client cancelled while they waited, with when. */
  readonly cancelled = new Map<string, number>();
  /** Rollbacks whose write failed: these may be published again under the same token. */
  readonly unwritten = new Set<string>();
  faults = 0;
  takeovers = 0;
  /** How often the namespace was cut into more partitions. */
  cuts = 0;
  readonly #world: VirtualClock;

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  get now(): number {
    return this.#world.monotonic();
  }

  /** The store's wall clock. */
  get storeNow(): number {
    return Math.floor(this.#world.now());
  }

  tell(who: string, what: string): void {
    this.trace.push(`${(this.now / 1_000).toFixed(6).padStart(11)} ${who.padEnd(7)} ${what}`);
  }

  fault(who: string, what: string): void {
    this.faults += 1;
    this.tell(who, `fault: ${what}`);
  }

  violate(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail, at: this.now });
    this.tell("!", `VIOLATION of "${invariant}": ${detail}`);
  }

  of(id: string): readonly Arrival[] {
    return this.arrivals.filter((arrival) => arrival.id === id);
  }
}
