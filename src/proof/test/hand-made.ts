/** Histories made by hand, for the tests of the checker. */
import type { Delivery } from "../../job.ts";
import { check, type Verdict } from "../checker.ts";
import type { EnqueueCall, FaultWindow, FinalJob, History, LogLine, Operation } from "../history.ts";

export const rules: History["rules"] = {
  leaseMs: 1_000,
  pollMs: 100,
  nodes: 2,
  concurrency: 2,
  retryMs: 100,
  precisionMs: 5,
  wallOffsetMs: 0,
  effectsWith: "job",
};

const nothing: History = {
  rules,
  operations: [],
  lines: [],
  faults: [],
  jobs: [],
  effects: [],
  ledger: [],
  relay: null,
  endedAtMs: 100_000,
};

export function history(...parts: readonly Partial<History>[]): History {
  const all = <K extends keyof History>(key: K): History[K] =>
    parts.flatMap((part) => (part[key] ?? []) as never) as never;
  return {
    ...nothing,
    operations: all("operations"),
    lines: all("lines"),
    faults: all("faults"),
    jobs: all("jobs"),
    effects: all("effects"),
    ledger: all("ledger"),
  };
}

const call = { invokedAtMs: 10, endedAtMs: 20, outcome: "ok" } as const;

export function enqueued(job: string, delivery: Delivery, given: Partial<EnqueueCall> = {}): Operation {
  return { kind: "enqueue", ...call, job, delivery, delayMs: 0, failures: 0, ...given };
}

export type RunOptions = Partial<LogLine> & { readonly endAtMs?: number | null; readonly done?: boolean };

/** A run that starts at a time and ends 10 ms later, unless it is said otherwise. */
export function run(job: string, token: number, atMs: number, options: RunOptions = {}): LogLine[] {
  const { endAtMs = atMs + 10, done = false, how = "returned", ...given } = options;
  const line = {
    node: "a",
    job,
    token,
    claimedAtMs: null,
    how: null,
    schedule: null,
    fireAt: null,
    ...given,
  };
  const lines: LogLine[] = [{ ...line, what: "start", atMs }];
  if (endAtMs !== null) lines.push({ ...line, what: "end", atMs: endAtMs, how });
  if (done) lines.push({ ...line, what: "done", atMs: (endAtMs ?? atMs) + 1 });
  return lines;
}

export function ended(id: string, delivery: Delivery, given: Partial<FinalJob> = {}): FinalJob {
  return {
    id,
    delivery,
    state: "succeeded",
    reason: null,
    token: 1,
    attempt: 1,
    rollbacks: 0,
    resultToken: 1,
    schedule: null,
    fireAt: 0,
    ...given,
  };
}

export function fault(
  kind: FaultWindow["kind"],
  node: string | null,
  fromMs: number,
  untilMs = fromMs,
): FaultWindow {
  return { kind, node, fromMs, untilMs, detail: "" };
}

/** One job, enqueued, run and ended without a hitch. */
export function clean(job: string, delivery: Delivery): Partial<History> {
  return {
    operations: [enqueued(job, delivery)],
    lines: run(job, 1, 30, { done: true }),
    jobs: [ended(job, delivery)],
    effects: delivery === "effectively-once" ? [{ job, token: 1 }] : [],
  };
}

export function kinds(verdict: Verdict): string[] {
  return [...new Set(verdict.violations.map(({ kind }) => kind))].sort();
}

export function broken(...parts: readonly Partial<History>[]): string[] {
  return kinds(check(history(...parts)));
}

/** A kill in the middle, and a second run elsewhere. */
export function killed(delivery: Delivery): Partial<History> {
  return {
    operations: [enqueued("j", delivery)],
    lines: [...run("j", 1, 30, { endAtMs: null }), ...run("j", 2, 1_200, { node: "b", done: true })],
    faults: [fault("kill", "a", 35)],
    jobs: [ended("j", delivery, { token: 2, resultToken: 2 })],
    effects: delivery === "effectively-once" ? [{ job: "j", token: 2 }] : [],
  };
}
