import type { ClaimedJob, DueJob } from "../store.ts";
import type { Outlet } from "./outlet.ts";
import type { Lane } from "./reader.ts";

interface Flight {
  readonly job: ClaimedJob;
  readonly outlet: Outlet | undefined;
  readonly lane: Lane;
  /** How it ends goes along with the next checkpoint, and makes room for what that one names: it is one write. */
  isDecided: boolean;
}

/** What may still be named. */
export interface Room {
  /** Nothing more of this lane may be named. */
  isFull(lane: Lane): boolean;
  admits(job: DueJob, outlet: Outlet): boolean;
  take(job: DueJob, outlet: Outlet, lane: Lane): void;
}

/** Jobs of a partition that are named and not settled, and how many more there may be. */
export class Flights {
  readonly #flights = new Map<string, Flight>();
  readonly #width: number;
  readonly #outlets: number;

  /** @param outlets over how many transports the width is shared out, so that one that hangs leaves the others their part. */
  constructor(width: number, outlets: number) {
    this.#width = width;
    this.#outlets = Math.max(1, outlets);
  }

  get size(): number {
    return this.#flights.size;
  }

  has(id: string): boolean {
    return this.#flights.has(id);
  }

  isSame(job: ClaimedJob): boolean {
    return this.#flights.get(job.id)?.job.token === job.token;
  }

  add(job: ClaimedJob, outlet: Outlet | undefined, lane: Lane): void {
    this.#flights.set(job.id, { job, outlet, lane, isDecided: false });
  }

  /** Whether its end is decided, and not written yet. */
  decide(job: ClaimedJob, isDecided: boolean): void {
    const flight = this.#flights.get(job.id);
    if (flight?.job.token === job.token) flight.isDecided = isDecided;
  }

  delete(job: ClaimedJob): void {
    if (this.isSame(job)) this.#flights.delete(job.id);
  }

  times(): number[] {
    return [...this.#flights.values()].map(({ job }) => job.runAt.getTime());
  }

  /** The most that one checkpoint names. */
  get portion(): number {
    return share(this.#width, 1 / 2);
  }

  /** How many may be named and wait for their time: half of the width, so that there is room for what is due. */
  get ahead(): number {
    return Math.floor(this.#width / 2);
  }

  /** How many more the next checkpoint may name, whatever their lanes and transports. */
  get left(): number {
    return Math.min(this.#width - this.#undecided().length, this.portion);
  }

  /** Whether an at-most-once job is named: then the next checkpoint is what others wait for. */
  get hasOnce(): boolean {
    return [...this.#flights.values()].some(({ job }) => job.delivery === "at-most-once");
  }

  #undecided(): Flight[] {
    return [...this.#flights.values()].filter(({ isDecided }) => !isDecided);
  }

  /**
   * The room for one checkpoint: half of the width at the most, so that the next checkpoint is under way while the first half is published.
   * Where both lanes have work, each leaves the other a quarter. At-most-once goes alone: a death then costs one job.
   */
  room(hasBacklog: boolean): Room {
    const flights = this.#undecided();
    const inLane = (lane: Lane): number => flights.filter((flight) => flight.lane === lane).length;
    const most = {
      fresh: hasBacklog ? share(this.#width, 3 / 4) : this.#width,
      backlog: share(this.#width, 3 / 4),
    };
    const left = {
      all: this.left,
      fresh: most.fresh - inLane("fresh"),
      backlog: most.backlog - inLane("backlog"),
    };
    const outlets = new Map<Outlet, number>();
    const leftAt = (outlet: Outlet): number => {
      const known = outlets.get(outlet);
      if (known !== undefined) return known;
      const used = flights.filter((flight) => flight.outlet === outlet).length;
      const room = outlet.gate.width(share(this.#width, Math.max(1 / this.#outlets, leastShare))) - used;
      outlets.set(outlet, room);
      return room;
    };
    let isOnceTaken = flights.some(({ job }) => job.delivery === "at-most-once");
    return {
      isFull: (lane) => left.all <= 0 || left[lane] <= 0,
      admits: (job, outlet) => leftAt(outlet) > 0 && !(isOnceTaken && job.delivery === "at-most-once"),
      take: (job, outlet, lane) => {
        left.all -= 1;
        left[lane] -= 1;
        outlets.set(outlet, leftAt(outlet) - 1);
        if (job.delivery === "at-most-once") isOnceTaken = true;
      },
    };
  }
}

/** What one destination may have in flight, however many there are: one that hangs leaves the rest to the others. */
const leastShare = 1 / 4;

function share(width: number, part: number): number {
  return Math.max(1, Math.floor(width * part));
}
