import type { ClaimedJob, ClaimRef } from "../../../store/claims.ts";
import type { LineRun } from "../limits/shelves.ts";

/** Maximum number of runs that a claim reads in one trip. */
const maxRuns = 8;
/** How many held jobs are remembered; a forgotten one costs another trip, nothing else. */
const maxHeld = 100_000;

/** A job that a handle holds. */
export interface HeldJob {
  readonly seq: number;
  readonly queue: string;
  readonly name: string;
}

/** Jobs that a handle holds, by id and token. */
export class HeldJobs {
  readonly #jobs = new Map<string, HeldJob>();

  hold({ id, token, queue, name }: Pick<ClaimedJob, "id" | "token" | "queue" | "name">, seq: number): void {
    if (this.#jobs.size >= maxHeld) this.#jobs.clear();
    this.#jobs.set(keyOf(id, token), { seq, queue, name });
  }

  of({ id, token }: ClaimRef): HeldJob | undefined {
    return this.#jobs.get(keyOf(id, token));
  }

  drop({ id, token }: ClaimRef): void {
    this.#jobs.delete(keyOf(id, token));
  }
}

/** What a handle remembers between calls, so most of them need one trip. All of it is verified before it is relied on. */
export class Remembered {
  /** Plain jobs that were claimed through this handle. */
  readonly claimed = new HeldJobs();
  /** Relayed jobs that were named through it. */
  readonly named = new HeldJobs();
  /** Where due jobs were seen lately, the latest last. */
  readonly #runs = new Map<string, LineRun>();
  /** The last claim found lanes, limited queues or jobs that must run alone; the next one will, too. */
  obstructed = false;

  /** Jobs are due, or soon will be, in this run. */
  expect({ line, urgency }: LineRun): void {
    const key = `${line} ${urgency}`;
    this.#runs.delete(key);
    this.#runs.set(key, { line, urgency });
    if (this.#runs.size <= 4 * maxRuns) return;
    for (const oldest of this.#runs.keys()) {
      this.#runs.delete(oldest);
      break;
    }
  }

  /** The runs of these lines that a claim should read. */
  expected(lines: ReadonlySet<number>): LineRun[] {
    return [...this.#runs.values()].filter(({ line }) => lines.has(line)).slice(-maxRuns);
  }
}

function keyOf(id: string, token: number): string {
  return `${token} ${id}`;
}
