import type { Act } from "../operations/act.ts";
import type { BulkTask } from "../operations/bulk-task.ts";
import type { JobsFilter } from "../operations/find-jobs.ts";
import type { BulkOptions, Operations } from "../operations/operations.ts";

/** How many jobs met which outcome. */
export type Counts = Readonly<Record<string, number | undefined>>;

/** Something that is done to all jobs that match, and the words for it. */
export interface BulkChange {
  readonly action: string;
  /** "This will …" */
  readonly will: (jobs: string) => string;
  /** "3 jobs would be …" */
  readonly past: string;
  readonly doing: string;
  /** What to say of so many jobs that met an outcome. */
  readonly outcomes: Readonly<Record<string, string>>;
  readonly all: (operations: Operations, filter: JobsFilter, act: Act, options: BulkOptions) => BulkTask;
}

/** The same, done to jobs by their ids as well. */
export interface Change extends BulkChange {
  /** The outcomes in which it was done. */
  readonly done: readonly string[];
  readonly some: (operations: Operations, ids: readonly string[], act: Act) => Promise<Counts>;
}

const unknown = "not found";

export const cancel: Change = {
  action: "cancel",
  will: (jobs) => `cancel ${jobs}`,
  past: "cancelled",
  doing: "cancelling",
  outcomes: { cancelled: "cancelled", requested: "asked to stop", terminal: "had ended already", unknown },
  done: ["cancelled", "requested"],
  some: (operations, ids, act) => operations.cancel(ids, act),
  all: (operations, filter, act, options) => operations.cancelAll(filter, act, options),
};

export const redrive: Change = {
  action: "redrive",
  will: (jobs) => `redrive ${jobs}`,
  past: "redriven",
  doing: "redriving",
  outcomes: {
    redriven: "redriven",
    held: "held: another job has the unique key",
    refused: "neither dead nor lost",
    unknown,
  },
  done: ["redriven"],
  some: (operations, ids, act) => operations.redrive(ids, act),
  all: (operations, filter, act, options) => operations.redriveAll(filter, act, options),
};

export const remove: Change = {
  action: "delete",
  will: (jobs) => `delete ${jobs}`,
  past: "deleted",
  doing: "deleting",
  outcomes: {
    deleted: "deleted",
    held: "held: the unique key still counts",
    refused: "not ended yet",
    unknown,
  },
  done: ["deleted"],
  some: (operations, ids, act) => operations.delete(ids, act),
  all: (operations, filter, act, options) => operations.deleteAll(filter, act, options),
};

export const runNow: Change = {
  action: "run-now",
  will: (jobs) => `make ${jobs} due`,
  past: "made due",
  doing: "making due",
  outcomes: { updated: "made due", refused: "started or ended already", unknown },
  done: ["updated"],
  some: async (operations, ids, act) => {
    const counts: Record<string, number> = {};
    for (const id of ids) {
      const { outcome } = await operations.runNow(id, act);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
    return counts;
  },
  all: (operations, filter, act, options) => operations.runNowAll(filter, act, options),
};

export function prioritize(priority: number): BulkChange {
  return {
    action: "priority",
    will: (jobs) => `set the priority of ${jobs} to ${priority}`,
    past: "changed",
    doing: "changing",
    outcomes: { updated: "changed", refused: "started or ended already", unknown },
    all: (operations, filter, act, options) => operations.prioritizeAll(filter, priority, act, options),
  };
}
