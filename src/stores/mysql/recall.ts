import type { ClaimedJob, ClaimRef } from "../../store.ts";
import type { Run } from "./shelves.ts";

/** How many runs are looked into by a claim in one trip, at the most. */
const maxRuns = 8;
/** How many held jobs are remembered; one that is not costs another trip, and nothing else. */
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

/** What a handle remembers between calls, so that most of them need one trip. All of it is checked before anything rests on it. */
export class Recall {
  /** Plain jobs that were claimed through this handle. */
  readonly claimed = new HeldJobs();
  /** Relayed jobs that were named through it. */
  readonly named = new HeldJobs();
  /** Where due jobs were seen lately, the latest last. */
  readonly #runs = new Map<string, Run>();
  /** The last claim met lanes, limited queues or jobs that must run alone; the next one will, too. */
  obstructed = false;

  /** Jobs are due, or soon will be, in this run. */
  expect({ line, urgency }: Run): void {
    const key = `${line} ${urgency}`;
    this.#runs.delete(key);
    this.#runs.set(key, { line, urgency });
    if (this.#runs.size <= 4 * maxRuns) return;
    for (const oldest of this.#runs.keys()) {
      this.#runs.delete(oldest);
      break;
    }
  }

  /** The runs of these lines that a claim should look into. */
  expected(lines: ReadonlySet<number>): Run[] {
    return [...this.#runs.values()].filter(({ line }) => lines.has(line)).slice(-maxRuns);
  }
}

function keyOf(id: string, token: number): string {
  return `${token} ${id}`;
}
