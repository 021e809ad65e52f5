import { isFragile } from "../../../state.ts";
import { laneOf } from "../../lane.ts";
import { mayExpire, type Row } from "../rows.ts";
import { Sorted } from "./sorted.ts";

/** Claim order: higher priority first, then the oldest runAt, then enqueue order. */
export function byTurn(a: Row, b: Row): number {
  return b.priority - a.priority || a.runAt - b.runAt || a.order - b.order;
}

/** The position of a job by its time. */
export interface Place {
  readonly runAt: number;
  readonly order: number;
}

/** The order of becoming due. */
export function byTime(a: Place, b: Place): number {
  return a.runAt - b.runAt || a.order - b.order;
}

/** The order of expiring. */
export function byExpiry(a: Row, b: Row): number {
  return (a.expireAt ?? 0) - (b.expireAt ?? 0) || a.order - b.order;
}

/** The waiting jobs of one name in one queue: a claimer that may claim one of them may claim them all, except for the keys. */
export interface Group {
  readonly name: string;
  readonly queue: string;
  readonly later: Sorted<Row>;
  /** What is due: plain jobs, and the first of each lane. */
  readonly front: Sorted<Row>;
}

/** Where waiting jobs line up for claims. A job is added as "later" and moves forward once it is due. */
export class Lines {
  /** By name, then queue, so a backlog of names that no claimer asks for costs nothing. */
  readonly #groups = new Map<string, Map<string, Group>>();
  readonly #lanes = new Map<string, Sorted<Row>>();
  /** Due jobs that must run alone; they are in no lane. */
  readonly fragile = new Sorted<Row>(byTurn);
  readonly #due = new Set<Row>();
  readonly #expiring = new Sorted<Row>(byExpiry);
  /** Expired jobs, set aside until they are changed or reaped. */
  readonly #aside = new Set<Row>();
  #broughtTo = Number.NEGATIVE_INFINITY;

  add(row: Row): void {
    this.#group(row).later.add(row);
    if (mayExpire(row) && row.expireAt !== null) this.#expiring.add(row);
  }

  remove(row: Row): void {
    if (this.#aside.delete(row)) return;
    this.#expiring.delete(row);
    if (this.#due.delete(row)) this.#leaveFront(row);
    else this.#group(row).later.delete(row);
  }

  /** Moves forward what is due by now, and sets aside what has expired. */
  bringTo(now: number): void {
    if (now < this.#broughtTo) this.#takeBack();
    this.#broughtTo = now;
    for (const queues of this.#groups.values()) {
      for (const group of queues.values()) this.#bringGroup(group, now);
    }
    for (let row = this.#expiring.first(); row !== undefined; row = this.#expiring.first()) {
      if ((row.expireAt ?? 0) > now) break;
      this.remove(row);
      this.#aside.add(row);
    }
  }

  /** When the first of the later jobs becomes due. */
  nextAt(): number | null {
    let first: number | null = null;
    for (const queues of this.#groups.values()) {
      for (const { later } of queues.values()) {
        const at = later.first()?.runAt;
        if (at !== undefined && (first === null || at < first)) first = at;
      }
    }
    return first;
  }

  groups(name: string): Iterable<Group> {
    return this.#groups.get(name)?.values() ?? [];
  }

  #bringGroup(group: Group, now: number): void {
    for (let row = group.later.first(); row !== undefined && row.runAt <= now; row = group.later.first()) {
      group.later.delete(row);
      this.#due.add(row);
      this.#joinFront(row);
    }
  }

  /** The wall clock was set back: jobs that were due, or expired, may not be any more. */
  #takeBack(): void {
    for (const row of [...this.#due, ...this.#aside]) {
      this.remove(row);
      this.add(row);
    }
  }

  #joinFront(row: Row): void {
    if (isFragile(row)) {
      this.fragile.add(row);
      return;
    }
    const key = laneOf(row);
    if (key === null) {
      this.#group(row).front.add(row);
      return;
    }
    const lane = this.#lanes.get(key) ?? new Sorted<Row>(byTurn);
    this.#lanes.set(key, lane);
    this.#changeLane(lane, () => lane.add(row));
  }

  #leaveFront(row: Row): void {
    const key = laneOf(row);
    if (isFragile(row)) {
      this.fragile.delete(row);
    } else if (key === null) {
      this.#group(row).front.delete(row);
    } else {
      const lane = this.#lanes.get(key) ?? new Sorted<Row>(byTurn);
      this.#changeLane(lane, () => lane.delete(row));
      if (lane.first() === undefined) this.#lanes.delete(key);
    }
  }

  /** Keeps exactly the first job of the lane at the front of its group. */
  #changeLane(lane: Sorted<Row>, change: () => void): void {
    const before = lane.first();
    change();
    const after = lane.first();
    if (before === after) return;
    if (before !== undefined) this.#group(before).front.delete(before);
    if (after !== undefined) this.#group(after).front.add(after);
  }

  #group(row: Row): Group {
    const queues = this.#groups.get(row.name) ?? new Map<string, Group>();
    this.#groups.set(row.name, queues);
    const group = queues.get(row.queue) ?? {
      name: row.name,
      queue: row.queue,
      later: new Sorted<Row>(byTime),
      front: new Sorted<Row>(byTurn),
    };
    queues.set(row.queue, group);
    return group;
  }
}
