import type { Clock } from "../clock.ts";
import type { Emit } from "../events.ts";
import type { ScheduleRecord } from "../store/schedules.ts";

/** The same schedule is examined, and reported, at most this often. */
const tellEveryMs = 60_000;

interface Known {
  readonly record: ScheduleRecord;
  readonly toldMs: number;
}

/**
 * Due schedules that cannot be planned. They stay due, since a newer version of the code, or a person, may make them readable; so the planner
 * asks for that many more, and the oldest of them do not block the others.
 */
export class LeftOut {
  readonly #clock: Clock;
  readonly #emit: Emit;
  #known = new Map<string, Known>();
  #met = new Map<string, Known>();

  constructor(clock: Clock, emit: Emit) {
    this.#clock = clock;
    this.#emit = emit;
  }

  /** How many there were in the last round. */
  get size(): number {
    return this.#known.size;
  }

  /** Whether it was left out less than a minute ago, and is still the same: then it is left out again without a report. */
  isStill({ key, version, spec, job, nextAt }: ScheduleRecord): boolean {
    const known = this.#known.get(key);
    if (known === undefined || this.#clock.monotonic() - known.toldMs >= tellEveryMs) return false;
    const { record } = known;
    const isSame =
      record.version === version &&
      record.spec === spec &&
      record.job === job &&
      record.nextAt?.getTime() === nextAt?.getTime();
    if (isSame) this.#met.set(key, known);
    return isSame;
  }

  add(record: ScheduleRecord, error: unknown): void {
    this.#met.set(record.key, { record, toldMs: this.#clock.monotonic() });
    this.#emit("error", { error, during: `planning schedule ${JSON.stringify(record.key)}` });
  }

  /** Ends a round: whatever did not appear in it is readable now, or gone. Returns whether there are more of them than before. */
  endRound(): boolean {
    const grew = this.#met.size > this.#known.size;
    this.#known = this.#met;
    this.#met = new Map();
    return grew;
  }
}
