import type { HandlerJob, StopCause } from "../../../src/handler.ts";
import type { VirtualClock } from "../../../src/testing/virtual-clock.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** How a handler came to its end, as it tells it itself. */
export type RunEnd =
  | "returned"
  | "threw"
  | "gave-up"
  | "snoozed"
  | "interrupted"
  | "committed"
  /** The store failed under its transaction, and it let that error through. */
  | "store-failed";

/** One dispatch, written by the handler, outside the store. Times are on the world's monotonic clock. */
export interface HandlerRun {
  readonly job: HandlerJob;
  readonly process: SimulatedProcess;
  readonly startedAt: number;
  /** The store's wall clock at the start. */
  readonly startedOn: number;
  /** What was left of its lease then, in the store. */
  readonly leaseLeftMs: number;
  endedAt: number | null;
  end: RunEnd | null;
  signalledAt: number | null;
  signal: StopCause | null;
}

/** Something that the seed did to a process. */
export interface Fault {
  readonly process: SimulatedProcess;
  readonly kind: string;
  readonly from: number;
  to: number;
}

/** One claim as the store granted it. */
export interface Claim {
  readonly id: string;
  readonly token: number;
  readonly process: SimulatedProcess;
  readonly at: number;
  leaseUntil: number;
  /** Taken before its holder had room for it, and not renewed since. */
  ahead: boolean;
  /** When the store took it from its holder, or its holder ended it. */
  endedAt: number | null;
  endedBy: "holder" | "reaper" | null;
}

export interface Violation {
  readonly invariant: string;
  readonly detail: string;
  readonly at: number;
}

/** What clients were told, and what they asked for. */
export interface Asked {
  /** The outcomes of each cancel, none while it is not answered. */
  readonly cancelled: Map<string, string[]>;
  readonly redriven: Set<string>;
  /** Cancelled by a planner, for the next occurrence of their schedule. */
  readonly replaced: Set<string>;
  /** Ids whose enqueue was acknowledged, with the job that stands for them. */
  readonly acknowledged: Map<string, string>;
}

/** Everything that happened, told by those who did it; the invariants are judged from this and from nothing else. */
export class History {
  readonly runs: HandlerRun[] = [];
  readonly faults: Fault[] = [];
  readonly claims = new Map<string, Claim>();
  readonly asked: Asked = {
    cancelled: new Map(),
    redriven: new Set(),
    replaced: new Set(),
    acknowledged: new Map(),
  };
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  readonly #world: VirtualClock;
  readonly #runsById = new Map<string, HandlerRun[]>();

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  get now(): number {
    return this.#world.monotonic();
  }

  tell(who: string, what: string): void {
    this.trace.push(`${(this.now / 1_000).toFixed(6).padStart(11)} ${who.padEnd(7)} ${what}`);
  }

  violate(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail, at: this.now });
    this.tell("!", `VIOLATION of "${invariant}": ${detail}`);
  }

  started(process: SimulatedProcess, job: HandlerJob): HandlerRun {
    const run: HandlerRun = {
      job,
      process,
      startedAt: this.now,
      startedOn: Math.floor(this.#world.now()),
      leaseLeftMs: (this.claims.get(refOf(job))?.leaseUntil ?? this.now) - this.now,
      endedAt: null,
      end: null,
      signalledAt: null,
      signal: null,
    };
    this.runs.push(run);
    this.#runsById.set(job.id, [...this.runsOf(job.id), run]);
    this.tell(process.name, `starts ${refOf(job)} attempt ${job.attempt}, crashes ${job.crashes}`);
    return run;
  }

  signalled(run: HandlerRun, cause: StopCause): void {
    run.signalledAt = this.now;
    run.signal = cause;
    this.tell(run.process.name, `is told to stop ${refOf(run.job)}: ${cause}`);
  }

  ended(run: HandlerRun, end: RunEnd): void {
    run.endedAt = this.now;
    run.end = end;
    this.tell(run.process.name, `ends ${refOf(run.job)}: ${end}`);
  }

  runsOf(id: string): readonly HandlerRun[] {
    return this.#runsById.get(id) ?? [];
  }

  /** A fault that is over at once, or whose end will be written later. */
  fault(process: SimulatedProcess, kind: string, to = this.now): Fault {
    const fault = { process, kind, from: this.now, to };
    this.faults.push(fault);
    this.tell(process.name, `fault: ${kind}`);
    return fault;
  }

  faultOn(process: SimulatedProcess, from: number, to: number, kinds?: readonly string[]): boolean {
    return this.faults.some(
      (fault) =>
        fault.process === process &&
        fault.from <= to &&
        fault.to >= from &&
        (kinds === undefined || kinds.includes(fault.kind)),
    );
  }
}

export function refOf(claim: { readonly id: string; readonly token: number }): string {
  return `${claim.id}#${claim.token}`;
}
