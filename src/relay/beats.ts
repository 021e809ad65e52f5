/**
 * Where little is to be written it gathers until the next of these: a trip costs about as much for ten jobs as for one. Several
 * partitions of a process have them at the same moments, so that a store can write theirs together.
 */
const beatMs = 20;
/** The longest beat while something is late. A store that takes longer over checkpoints gets fewer and larger ones, which cost it less. */
const longestBeatMs = 50;
/** In how many turns the partitions have their beats: together they would keep the store, or this process, from everything else. */
const turns = 4;

/** When a partition writes its checkpoints. */
export class Beats {
  readonly #turn: number;
  readonly #calmMs: number;
  /** On the monotonic clock: when the last checkpoint began. */
  #begunAtMs = Number.NEGATIVE_INFINITY;
  /** How long the last one took. */
  #tookMs = 0;

  /** @param calmMs the beat while nothing is late: what is to be named next has time. */
  constructor(partition: number, calmMs: number) {
    this.#turn = (partition % turns) / turns;
    this.#calmMs = calmMs;
  }

  begin(nowMs: number): void {
    this.#begunAtMs = nowMs;
  }

  end(nowMs: number): void {
    this.#tookMs = nowMs - this.#begunAtMs;
  }

  /** How long until the next; 0 after a rest. */
  waitMs(nowMs: number, isLate: boolean): number {
    const everyMs = isLate ? Math.min(longestBeatMs, Math.max(beatMs, 2 * this.#tookMs)) : this.#calmMs;
    const turnMs = this.#turn * everyMs;
    const nextMs = (Math.floor((this.#begunAtMs - turnMs) / everyMs) + 1) * everyMs + turnMs;
    return Math.max(0, nextMs - nowMs);
  }
}
