import { type HistoryPoint, stepAt, stepMs } from "../history.ts";
import type { JobState } from "../job.ts";
import type { Overview } from "../operations/operations.ts";

/** Figures of the last looks, oldest first. */
export interface Rates {
  /** Per second. */
  readonly succeeded: readonly number[];
  readonly failed: readonly number[];
  /** How many were due, by queue. */
  readonly due: ReadonlyMap<string, readonly number[]>;
}

const kept = 60;

interface Sample {
  readonly at: number;
  readonly succeeded: number;
  readonly failed: number;
}

/** Turns counts into rates: what ended between two looks. What was pruned meanwhile makes a count fall, which is not a rate. */
export class RateMeter {
  #last: Sample | null = null;
  #rates: Rates = { succeeded: [], failed: [], due: new Map() };

  get rates(): Rates {
    return this.#rates;
  }

  /** Begins with what the store has kept: the last full minutes, up to the one that contains `now`. Without any, it begins empty. */
  begin(points: readonly HistoryPoint[], now: Date): void {
    if (points.length === 0) return;
    const byTime = new Map(points.map((point) => [point.at.getTime(), point]));
    const last = stepAt("minute", now.getTime());
    const minutes = Array.from({ length: kept }, (_, n) => byTime.get(last - (kept - n) * stepMs.minute));
    const perSecond = (count: (point: HistoryPoint) => number): number[] =>
      minutes.map((point) => (point === undefined ? 0 : count(point) / 60));
    this.#rates = {
      ...this.#rates,
      succeeded: perSecond(({ succeeded }) => succeeded),
      failed: perSecond(({ dead, lost }) => dead + lost),
    };
  }

  add({ now, counts, queues }: Pick<Overview, "now" | "counts" | "queues">): Rates {
    const count = (...states: JobState[]): number =>
      counts
        .filter(({ state }) => state !== undefined && states.includes(state))
        .reduce((sum, row) => sum + row.count, 0);
    const sample = { at: now.getTime(), succeeded: count("succeeded"), failed: count("dead", "lost") };
    const last = this.#last;
    const seconds = last === null ? 0 : (sample.at - last.at) / 1_000;
    this.#last = sample;
    const rate = (of: "succeeded" | "failed"): number[] =>
      last === null || seconds <= 0
        ? [...this.#rates[of]]
        : [...this.#rates[of], Math.max(0, sample[of] - last[of]) / seconds].slice(-kept);
    const due = new Map(
      queues.map(({ queue, due: depth }) => [
        queue,
        [...(this.#rates.due.get(queue) ?? []), depth].slice(-kept),
      ]),
    );
    this.#rates = { succeeded: rate("succeeded"), failed: rate("failed"), due };
    return this.#rates;
  }
}
