import { randomUUID } from "node:crypto";
import { recordError } from "../errors.ts";
import type { BulkProgress, BulkTask } from "../operations/bulk-task.ts";
import { ProblemError } from "./problem.ts";

/** A task over all jobs that match, as it is shown. */
export interface TaskView extends BulkProgress {
  readonly id: string;
  readonly action: "cancel" | "redrive" | "delete" | "run-now" | "priority";
  readonly dryRun: boolean;
  readonly actor: string;
  readonly startedAt: Date;
  readonly error: string | null;
}

type About = Pick<TaskView, "action" | "dryRun" | "actor">;

interface Known {
  readonly id: string;
  readonly about: About;
  readonly task: BulkTask;
  readonly startedAt: Date;
  error: string | null;
}

/** Running tasks load the store, so there are few at a time; ended ones are kept to be asked about. */
const mostRunning = 8;
const mostKept = 200;

/**
 * The background tasks of this process. A process that ends takes them with it: what they have done stays done, the audit log has how far
 * they came, and the same request continues where they stopped.
 */
export class Tasks {
  readonly #known = new Map<string, Known>();

  start(about: About, begin: () => BulkTask): TaskView {
    const running = this.#all().filter(({ task }) => task.progress.state === "running");
    if (running.length >= mostRunning) {
      throw new ProblemError(
        "too-many-tasks",
        `${mostRunning} tasks are running; wait for one to end, or stop one`,
        { "Retry-After": "5" },
      );
    }
    const known: Known = { id: randomUUID(), about, task: begin(), startedAt: new Date(), error: null };
    known.task.result().catch((error: unknown) => {
      known.error = recordError(error).message;
    });
    this.#known.set(known.id, known);
    this.#forget();
    return viewOf(known);
  }

  list(): TaskView[] {
    return this.#all().map(viewOf).reverse();
  }

  get(id: string): TaskView {
    return viewOf(this.#find(id));
  }

  stop(id: string): TaskView {
    const known = this.#find(id);
    known.task.stop();
    return viewOf(known);
  }

  stopAll(): void {
    for (const { task } of this.#all()) task.stop();
  }

  #all(): Known[] {
    return [...this.#known.values()];
  }

  #find(id: string): Known {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    throw new ProblemError(
      "not-found",
      `there is no task ${JSON.stringify(id)}; it belongs to another process, or was forgotten after ${mostKept} others`,
    );
  }

  /** The oldest that have ended go first. */
  #forget(): void {
    for (const { id, task } of this.#all()) {
      if (this.#known.size <= mostKept) return;
      if (task.progress.state !== "running") this.#known.delete(id);
    }
  }
}

function viewOf({ id, about, task, startedAt, error }: Known): TaskView {
  return { id, ...about, startedAt, ...task.progress, error };
}
