import {
  type HistoryEntry,
  lateBucket,
  longestTimeMs,
  maxHistoryEntries,
  noFigures,
  stepAt,
  stepMs,
} from "../history.ts";

/** Figures while they are being added up. */
type Growing = { -readonly [K in keyof HistoryEntry]: HistoryEntry[K] } & { late: number[] };

/** Figures of one minute of this process's clock. */
export interface TalliedMinute {
  readonly startMs: number;
  readonly entries: readonly Omit<HistoryEntry, "agoMs">[];
}

/** What counts as an end. */
export type EndKind = "succeeded" | "failed" | "crashed" | "dead" | "lost" | "cancelled";

/** What happened on the way to an end, and ended nothing. */
export type EventKind =
  | "existing"
  | "absorbed"
  | "stale"
  | "namingRetries"
  | "publishRetries"
  | "rollbackRetries";

/** How many minutes wait at most while the store takes none; the oldest go first. */
const maxMinutes = 60;
/** An app with a queue for each customer gets this many pairs of queue and name for itself; the rest is one. */
const others = "(others)";

/** Adds up what ended in this process, by minute, queue and name. It is on the path of every job, so it only looks up and adds. */
export class HistoryTally {
  #minutes = new Map<number, Map<string, Map<string, Growing>>>();
  #size = 0;

  get isEmpty(): boolean {
    return this.#minutes.size === 0;
  }

  ended(nowMs: number, queue: string, name: string, kind: EndKind, runMs: number | null): void {
    const figures = this.#at(nowMs, queue, name);
    figures[kind] += 1;
    if (runMs === null) return;
    const ms = wholeMs(runMs);
    figures.runs += 1;
    figures.runSumMs += ms;
    if (ms > figures.runMaxMs) figures.runMaxMs = ms;
  }

  happened(nowMs: number, queue: string, name: string, kind: EventKind): void {
    this.#at(nowMs, queue, name)[kind] += 1;
  }

  dispatched(nowMs: number, queue: string, name: string, lateMs: number): void {
    const figures = this.#at(nowMs, queue, name);
    const ms = wholeMs(lateMs);
    const bucket = lateBucket(ms);
    figures.late[bucket] = (figures.late[bucket] ?? 0) + 1;
    figures.lateSumMs += ms;
    if (ms > figures.lateMaxMs) figures.lateMaxMs = ms;
  }

  /** @param queue "" for all of them together */
  waited(nowMs: number, queue: string, due: number): void {
    const figures = this.#at(nowMs, queue, "");
    if (due > figures.dueMax) figures.dueMax = due;
  }

  /** Everything, which is then no longer here. */
  take(): TalliedMinute[] {
    const minutes = [...this.#minutes].map(([startMs, queues]) => ({
      startMs,
      entries: [...queues.values()].flatMap((names) => [...names.values()]),
    }));
    this.#minutes = new Map();
    this.#size = 0;
    return minutes;
  }

  #at(nowMs: number, queue: string, name: string): Growing {
    const startMs = stepAt("minute", nowMs);
    return (
      this.#minutes.get(startMs)?.get(queue)?.get(name) ??
      (this.#size < maxHistoryEntries ? this.#add(startMs, queue, name) : this.#add(startMs, others, others))
    );
  }

  #add(startMs: number, queue: string, name: string): Growing {
    const queues = this.#minutes.get(startMs) ?? new Map<string, Map<string, Growing>>();
    this.#minutes.set(startMs, queues);
    if (this.#minutes.size > maxMinutes) this.#forgetOldest();
    const names = queues.get(queue) ?? new Map<string, Growing>();
    queues.set(queue, names);
    const known = names.get(name);
    if (known !== undefined) return known;
    const figures = { ...noFigures, late: [...noFigures.late], agoMs: 0, queue, name };
    names.set(name, figures);
    this.#size += 1;
    return figures;
  }

  #forgetOldest(): void {
    const [first] = this.#minutes;
    if (first === undefined) return;
    const [startMs, queues] = first;
    this.#minutes.delete(startMs);
    for (const names of queues.values()) this.#size -= names.size;
  }
}

/**
 * As the store takes them: by the age of the middle of their minute. So they land in the store's minute of the same name as long as the two
 * clocks are less than half a minute apart, and in the nearest one beyond that.
 */
export function entriesOf(minutes: readonly TalliedMinute[], nowMs: number): HistoryEntry[] {
  return minutes.flatMap(({ startMs, entries }) => {
    const agoMs = Math.round(nowMs - (startMs + stepMs.minute / 2));
    return entries.map((entry) => ({ ...entry, agoMs }));
  });
}

function wholeMs(ms: number): number {
  return Math.min(Math.max(0, Math.round(ms)), longestTimeMs);
}
