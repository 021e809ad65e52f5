import { isFragile } from "../../state.ts";
import { mayExpire, type Row } from "./row.ts";
import { Sorted } from "./sorted.ts";

/** The order of claims: higher priority first, then the oldest runAt, then the order of enqueueing. */
export function byTurn(a: Row, b: Row): number {
  return b.priority - a.priority || a.runAt - b.runAt || a.order - b.order;
}

/** Where a job stands by its time. */
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

/** The waiting jobs of one name in one queue: who may claim one of them may claim them all, but for the keys. */
export interface Group {
  readonly name: string;
  readonly queue: string;
  readonly later: Sorted<Row>;
  /** What is due: plain jobs, and of each lane its first. */
  readonly front: Sorted<Row>;
}

/** Jobs with a key stand in a lane; null for plain ones. */
export function laneOf(row: Row): string | null {
  if (row.concurrencyKey !== null) return `concurrency ${row.concurrencyKey}`;
  return row.rateKey === null ? null : `rate ${row.rateKey}`;
}

/** Where waiting jobs stand in line for claims. A job is added as "later" and comes forward when time has passed. */
export class Lines {
  /** By name, then queue, so that a backlog of names that nobody asks for costs nothing. */
  readonly #groups = new Map<string, Map<string, Group>>();
  readonly #lanes = new Map<string, Sorted<Row>>();
  /** Due jobs that must run alone; they stand in no lane. */
  readonly fragile = new Sorted<Row>(byTurn);
  readonly #due = new Set<Row>();
  readonly #expiring = new Sorted<Row>(byExpiry);
  /** Expired jobs, out of everybody's way until they are changed or reaped. */
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

  /** Brings forward what is due by now, and sets aside what has expired. */
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

  /** When the first of those that wait for their time falls due. */
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

  /** The wall clock was set back: what was due, or expired, may not be any more. */
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
