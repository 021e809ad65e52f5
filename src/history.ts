/**
 * What has ended, added up by minute and by hour. These are figures for charts, not facts: a killed process takes its last few seconds of
 * them with it, and no decision rests on them.
 */
export type HistoryStep = "minute" | "hour";

export const historySteps = ["minute", "hour"] as const satisfies HistoryStep[];

export const stepMs = { minute: 60_000, hour: 3_600_000 } as const satisfies Record<HistoryStep, number>;

/** How long each step is kept. */
export const historyKeptMs = { minute: 24 * 3_600_000, hour: 30 * 24 * 3_600_000 } as const satisfies Record<
  HistoryStep,
  number
>;

/** The upper bounds of the lateness histogram, each inclusive. A last bucket holds everything later. */
export const lateBoundsMs = [10, 100, 1_000, 10_000, 60_000, 600_000] as const;

/** Longer times count as this long, so sums stay exact integers whatever a job's due time was. */
export const longestTimeMs = 7 * 24 * 3_600_000;

/** How many entries one flush carries. */
export const maxHistoryEntries = 1_000;

/** Whole numbers. */
export interface HistoryFigures {
  readonly succeeded: number;
  /** Attempts that failed and are retried. */
  readonly failed: number;
  /** Attempts whose holder died or went silent, and that are retried. */
  readonly crashed: number;
  readonly dead: number;
  readonly lost: number;
  /** Cancelled while active, or expired. Jobs that a person cancelled while they waited are not counted. */
  readonly cancelled: number;
  /** Enqueues of an id that already existed: one job instead of two. */
  readonly existing: number;
  /** Enqueues absorbed by a unique key. */
  readonly absorbed: number;
  /** Outcomes that the store refused because the claim was no longer the writer's. */
  readonly stale: number;
  /** Dispatches to a broker that are tried again because the batch could not be named in the store, */
  readonly namingRetries: number;
  /** because the broker refused the message or did not answer, */
  readonly publishRetries: number;
  /** and because the rollback could not be written. */
  readonly rollbackRetries: number;
  /** How many handlers were timed, and how long they took. */
  readonly runs: number;
  readonly runSumMs: number;
  readonly runMaxMs: number;
  /** From when jobs were due until they were started, or handed to their broker. `late` counts them by {@link lateBoundsMs}. */
  readonly lateSumMs: number;
  readonly lateMaxMs: number;
  readonly late: readonly number[];
  /** The most jobs that were due and waiting at once. Kept for each queue and for all, so it is 0 where a name is asked for. */
  readonly dueMax: number;
}

/** Figures of one queue and name. */
export interface HistoryEntry extends HistoryFigures {
  /** How long ago; the store turns it into an instant on its own clock. */
  readonly agoMs: number;
  /** "": figures of all queues together, which belong to none of them. Then the name is "" too. */
  readonly queue: string;
  /** "": figures of the queue, which belong to none of its names. */
  readonly name: string;
}

/** Rows are kept for each queue and name, for each queue, and for all: a chart reads one row for each point. */
export const historyLevels = ["job", "queue", "all"] as const;

export type HistoryLevel = (typeof historyLevels)[number];

export interface RecordHistoryParams {
  readonly node: string;
  /** Rises with each new call of this node. */
  readonly sequence: number;
  readonly entries: readonly HistoryEntry[];
}

export interface HistoryParams {
  readonly step: HistoryStep;
  /** Steps that begin at or after this instant, */
  readonly since: Date;
  /** and before this one. */
  readonly until: Date;
  readonly queue?: string;
  readonly name?: string;
  /** One point for each queue, or each name, of a step; null: one for the step. */
  readonly by: "queue" | "name" | null;
  readonly limit: number;
}

export interface HistoryPoint extends HistoryFigures {
  /** When the step begins. */
  readonly at: Date;
  /** Where the points were asked for by queue. */
  readonly queue?: string;
  /** Where the points were asked for by name. */
  readonly name?: string;
}

export interface History {
  /** By time, then by queue or name. A step in which nothing ended has no point. */
  readonly points: readonly HistoryPoint[];
  /** Whether `limit` cut the answer short: there are later points. */
  readonly more: boolean;
}

export const noFigures: HistoryFigures = Object.freeze({
  succeeded: 0,
  failed: 0,
  crashed: 0,
  dead: 0,
  lost: 0,
  cancelled: 0,
  existing: 0,
  absorbed: 0,
  stale: 0,
  namingRetries: 0,
  publishRetries: 0,
  rollbackRetries: 0,
  runs: 0,
  runSumMs: 0,
  runMaxMs: 0,
  lateSumMs: 0,
  lateMaxMs: 0,
  dueMax: 0,
  late: Object.freeze(Array.from({ length: lateBoundsMs.length + 1 }, () => 0)),
});

export function addFigures(one: HistoryFigures, other: HistoryFigures): HistoryFigures {
  return {
    succeeded: one.succeeded + other.succeeded,
    failed: one.failed + other.failed,
    crashed: one.crashed + other.crashed,
    dead: one.dead + other.dead,
    lost: one.lost + other.lost,
    cancelled: one.cancelled + other.cancelled,
    existing: one.existing + other.existing,
    absorbed: one.absorbed + other.absorbed,
    stale: one.stale + other.stale,
    namingRetries: one.namingRetries + other.namingRetries,
    publishRetries: one.publishRetries + other.publishRetries,
    rollbackRetries: one.rollbackRetries + other.rollbackRetries,
    runs: one.runs + other.runs,
    runSumMs: one.runSumMs + other.runSumMs,
    runMaxMs: Math.max(one.runMaxMs, other.runMaxMs),
    lateSumMs: one.lateSumMs + other.lateSumMs,
    lateMaxMs: Math.max(one.lateMaxMs, other.lateMaxMs),
    dueMax: Math.max(one.dueMax, other.dueMax),
    late: one.late.map((count, bucket) => count + (other.late[bucket] ?? 0)),
  };
}

/** Which bucket of the histogram a lateness falls into. */
export function lateBucket(lateMs: number): number {
  const bucket = lateBoundsMs.findIndex((boundMs) => lateMs <= boundMs);
  return bucket === -1 ? lateBoundsMs.length : bucket;
}

/** When the step that contains an instant begins. */
export function stepAt(step: HistoryStep, instantMs: number): number {
  return Math.floor(instantMs / stepMs[step]) * stepMs[step];
}

/** What stores call the figures that add up, and those of which the highest stays. */
export const summedColumns: readonly string[] = [
  "succeeded",
  "failed",
  "crashed",
  "dead",
  "lost",
  "cancelled",
  "existing",
  "absorbed",
  "stale",
  "naming_retries",
  "publish_retries",
  "rollback_retries",
  "runs",
  "run_sum_ms",
  "late_sum_ms",
  ...noFigures.late.map((_, bucket) => `late_${bucket}`),
];
export const highestColumns: readonly string[] = ["run_max_ms", "late_max_ms", "due_max"];

/** In the order of {@link summedColumns} and {@link highestColumns}. */
export function toNumbers(figures: HistoryFigures): number[] {
  const { succeeded, failed, crashed, dead, lost, cancelled, existing, absorbed, stale } = figures;
  const { namingRetries, publishRetries, rollbackRetries, runs, runSumMs, lateSumMs } = figures;
  const { late, runMaxMs, lateMaxMs, dueMax } = figures;
  return [
    ...[succeeded, failed, crashed, dead, lost, cancelled, existing, absorbed, stale],
    ...[namingRetries, publishRetries, rollbackRetries, runs, runSumMs, lateSumMs],
    ...late,
    ...[runMaxMs, lateMaxMs, dueMax],
  ];
}

/** The other way round. */
export function fromNumbers(numbers: readonly number[]): HistoryFigures {
  const [succeeded = 0, failed = 0, crashed = 0, dead = 0, lost = 0, cancelled = 0, ...others] = numbers;
  const [existing = 0, absorbed = 0, stale = 0, namingRetries = 0, publishRetries = 0, ...rest] = others;
  const [rollbackRetries = 0, runs = 0, runSumMs = 0, lateSumMs = 0, ...times] = rest;
  return {
    ...{ succeeded, failed, crashed, dead, lost, cancelled, existing, absorbed, stale },
    ...{ namingRetries, publishRetries, rollbackRetries, runs, runSumMs, lateSumMs },
    late: times.slice(0, noFigures.late.length),
    runMaxMs: times.at(-3) ?? 0,
    lateMaxMs: times.at(-2) ?? 0,
    dueMax: times.at(-1) ?? 0,
  };
}

/** Under which name a store keeps the rows of a level and step. */
export function seriesOf(level: HistoryLevel, step: HistoryStep): string {
  return `${level}-${step}`;
}

/** The rows that answer a question, which are no more than it needs. */
export function seriesFor({ step, queue, name, by }: HistoryParams): string {
  if (by === "name" || name !== undefined) return seriesOf("job", step);
  return seriesOf(by === "queue" || queue !== undefined ? "queue" : "all", step);
}

export interface LeveledEntry extends HistoryEntry {
  readonly level: HistoryLevel;
}

/** What is added to the rows of each level: the entries, and their sums by queue and over all. */
export function leveled(entries: readonly HistoryEntry[]): LeveledEntry[] {
  const rows = new Map<string, LeveledEntry>();
  for (const entry of entries) {
    for (const level of levelsOf(entry)) {
      const queue = level === "all" ? "" : entry.queue;
      const name = level === "job" ? entry.name : "";
      const key = JSON.stringify([level, entry.agoMs, queue, name]);
      const figures = addFigures(rows.get(key) ?? noFigures, entry);
      rows.set(key, { level, agoMs: entry.agoMs, queue, name, ...figures });
    }
  }
  return [...rows.values()];
}

function levelsOf({ queue, name }: HistoryEntry): readonly HistoryLevel[] {
  if (name !== "") return historyLevels;
  return queue === "" ? ["all"] : ["queue"];
}
