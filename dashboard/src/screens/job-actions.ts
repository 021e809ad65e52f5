import type { JobState, Me, Task } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { count } from "../format.ts";
import { because } from "../parts/dialog.tsx";
import { jobPath } from "../router.ts";
import { bodyOf, type Filter } from "./filter.ts";

export type JobAction = "redrive" | "run-now" | "priority" | "cancel" | "delete";

interface About {
  readonly title: string;
  /** Asks whether it may be done to so many. */
  ask(which: string): string;
  /** What it does, and whether it can be undone. */
  readonly effect: string;
  /** Of which states it changes jobs. */
  readonly states: readonly JobState[];
  readonly needs: Me["role"];
  readonly isDanger: boolean;
}

export const aboutActions: Readonly<Record<JobAction, About>> = {
  redrive: {
    title: "Redrive",
    ask: (which) => `Redrive ${which}?`,
    effect: "Dead and lost jobs go back to waiting with fresh attempts.",
    states: ["dead", "lost"],
    needs: "operate",
    isDanger: false,
  },
  "run-now": {
    title: "Run now",
    ask: (which) => `Run ${which} now?`,
    effect: "Jobs that wait for their time, or for a retry, are due at once.",
    states: ["waiting"],
    needs: "operate",
    isDanger: false,
  },
  priority: {
    title: "Set priority",
    ask: (which) => `Set the priority of ${which}?`,
    effect: "Of the due jobs of a queue, those with the higher priority run first. You can change it again.",
    states: ["waiting", "blocked"],
    needs: "operate",
    isDanger: false,
  },
  cancel: {
    title: "Cancel",
    ask: (which) => `Cancel ${which}?`,
    effect:
      "Jobs that wait end as cancelled; running ones are asked to stop. This is final: a cancelled job cannot be redriven, only enqueued again.",
    states: ["waiting", "active", "blocked"],
    needs: "operate",
    isDanger: true,
  },
  delete: {
    title: "Delete",
    ask: (which) => `Delete ${which}?`,
    effect: "Ended jobs and their trails are gone for good. The audit log keeps how many they were.",
    states: ["succeeded", "dead", "lost", "cancelled"],
    needs: "admin",
    isDanger: true,
  },
};

export type Tally = Record<string, number>;

export interface Order {
  readonly action: JobAction;
  readonly reason: string;
  readonly priority: number;
}

/** How far it has come. */
export interface Progress {
  readonly done: number;
  readonly tally: Tally;
}

const pollMs = 300;
const atOnce = 6;

/** Does it to each of some jobs. One that fails does not stop the others; it is in the tally. */
export async function actOnEach(
  order: Order,
  ids: readonly string[],
  show: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Progress> {
  const left = [...ids];
  let progress: Progress = { done: 0, tally: {} };
  const work = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined && !signal.aborted; id = left.shift()) {
      const outcome = await actOnOne(order, id);
      const many = progress.tally[outcome] ?? 0;
      progress = { done: progress.done + 1, tally: { ...progress.tally, [outcome]: many + 1 } };
      show(progress);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return progress;
}

async function actOnOne({ action, reason, priority }: Order, id: string): Promise<string> {
  const path = jobPath(id);
  const why = because(reason);
  const call =
    action === "delete"
      ? request<{ outcome: string }>(path, { method: "DELETE", query: why })
      : action === "priority"
        ? request<{ outcome: string }>(path, { method: "PATCH", body: { priority, ...why } })
        : request<{ outcome: string }>(`${path}/${action}`, { method: "POST", body: why });
  return call.then(
    ({ outcome }) => outcome,
    (error: Error) => `failed (${error.message})`,
  );
}

/** Gives each its own priority again. Those that have started since stay as they are. */
export async function putPrioritiesBack(
  jobs: readonly { readonly id: string; readonly priority: number }[],
): Promise<void> {
  const tally: Tally = {};
  for (const { id, priority } of jobs) {
    const outcome = await actOnOne({ action: "priority", reason: "undone", priority }, id);
    tally[outcome] = (tally[outcome] ?? 0) + 1;
  }
  const { updated = 0 } = tally;
  if (updated < jobs.length) throw new Error(`${tallyText(tally)}.`);
}

/** How many jobs match that the action can change; shows the count while it grows. */
export async function countAll(
  action: JobAction,
  filter: Filter,
  show: (many: number) => void,
): Promise<number> {
  const state = filter["state"] as JobState | undefined;
  if (state !== undefined && !aboutActions[action].states.includes(state)) return 0;
  const body = { filter: bodyOf(filter), dryRun: true, ...(action === "priority" ? { priority: 0 } : {}) };
  const first = await request<Task>(`jobs/${action}`, { method: "POST", body });
  const { matched, error } = await follow(first, (task) => show(task.matched));
  if (error !== null) throw new Error(error);
  return matched;
}

/** Runs the action on all that match: a task of the server, which continues when this tab is closed. */
export async function actOnAll(
  { action, reason, priority }: Order,
  filter: Filter,
  show: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Progress> {
  const first = await request<Task>(`jobs/${action}`, {
    method: "POST",
    body: { filter: bodyOf(filter), ...because(reason), ...(action === "priority" ? { priority } : {}) },
  });
  signal.addEventListener("abort", () => void request(`tasks/${first.id}/stop`, { method: "POST" }));
  const end = await follow(first, (task) => show({ done: task.matched, tally: task.outcomes }));
  const tally = { ...end.outcomes, ...(end.changed > 0 ? { "changed by others first": end.changed } : {}) };
  if (end.state !== "failed") return { done: end.matched, tally };
  throw new Error(`${end.error ?? "The task failed."} Before that: ${tallyText(tally)}.`);
}

async function follow(task: Task, show: (task: Task) => void): Promise<Task> {
  let current = task;
  for (show(current); current.state === "running"; show(current)) {
    await new Promise((done) => setTimeout(done, pollMs));
    current = await request<Task>(`tasks/${current.id}`);
  }
  return current;
}

const words: Readonly<Record<string, string>> = {
  requested: "asked to stop",
  terminal: "had ended already",
  held: "kept back by their unique key",
  refused: "not in a state for it",
  updated: "changed",
  unknown: "no longer kept",
};

/** `3 redriven, 1 not in a state for it`. */
export function tallyText(tally: Tally): string {
  const parts = Object.entries(tally).map(([outcome, many]) => `${count(many)} ${words[outcome] ?? outcome}`);
  return parts.length === 0 ? "nothing matched any more" : parts.join(", ");
}
