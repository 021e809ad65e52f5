import { attemptsOf } from "../attempts.ts";
import type { ExpectedJob } from "../expected-jobs.ts";
import type { FinalJob, History } from "../history.ts";
import type { Violation } from "../violation.ts";
import type { RoutedCase } from "./check-routed-job.ts";
import type { RelayEvidence } from "./evidence.ts";
import type { Publish } from "./publishes.ts";
import { faultsOfHolders, faultsOfPublishes } from "./trouble.ts";

export interface RoutedEvidence {
  readonly history: History;
  readonly evidence: RelayEvidence;
  readonly expected: ReadonlyMap<string, ExpectedJob>;
  readonly finals: ReadonlyMap<string, FinalJob>;
  readonly publishes: ReadonlyMap<string, readonly Publish[]>;
}

/** Puts together what is known of each job that was asked for. */
export function routedCases(parts: RoutedEvidence): RoutedCase[] {
  const { history, evidence, expected, finals, publishes } = parts;
  const faults = { publishFaults: faultsOfPublishes(history), holderFaults: faultsOfHolders(history) };
  const runs = attemptsOf(history);
  const effects = Map.groupBy(history.effects, ({ job }) => job);
  const copies = Map.groupBy(evidence.copies, ({ job }) => job);
  const retries = Map.groupBy(
    evidence.lines.filter((line) => line.what === "retry"),
    ({ job }) => job,
  );
  const settles = Map.groupBy(
    evidence.lines.filter((line) => line.what === "settle"),
    ({ job }) => job,
  );
  return [...expected.values()].map((job) => ({
    history,
    job,
    attempts: publishes.get(job.id) ?? [],
    effects: effects.get(job.id) ?? [],
    final: finals.get(job.id) ?? null,
    copies: copies.get(job.id) ?? [],
    runs: runs.get(job.id) ?? [],
    retries: retries.get(job.id) ?? [],
    settles: settles.get(job.id) ?? [],
    ...faults,
  }));
}

/** Whatever the broker has, and whatever came to a consumer, was asked for by somebody. */
export function checkStrangers(
  { copies, lines }: RelayEvidence,
  expected: ReadonlyMap<string, ExpectedJob>,
): Violation[] {
  const strangers = new Map<string, string>();
  for (const { job } of copies) if (!expected.has(job)) strangers.set(job, "the broker has it");
  for (const line of lines)
    if (line.what === "receive" && !expected.has(line.job)) strangers.set(line.job, "a consumer received it");
  return [...strangers].map(([subject, how]) => ({
    kind: "phantom",
    delivery: null,
    subject,
    detail: `${how}, but it was never enqueued`,
    atMs: null,
  }));
}
