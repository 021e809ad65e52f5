import { type Clock, systemClock } from "../clock.ts";
import { newId } from "../id.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** A process whose wall clock is off, and may be set to be off by something else. Its monotonic clock is the machine's. */
export class SkewedRuntime implements Runtime {
  offsetMs: number;
  readonly clock: Clock;

  constructor(offsetMs: number) {
    this.offsetMs = offsetMs;
    this.clock = { ...systemClock, now: () => Date.now() + this.offsetMs };
  }

  random(): number {
    return Math.random();
  }

  newId(): string {
    return newId(this.clock.now());
  }
}
