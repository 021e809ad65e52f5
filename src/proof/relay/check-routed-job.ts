import { isTerminal } from "../../state.ts";
import { type Attempt, faultOn } from "../attempts.ts";
import {
  broken,
  checkCancels,
  checkEarly,
  checkUnknown,
  inOrder,
  type JobCase,
  type JobFindings,
  wasCancelled,
} from "../check-job.ts";
import type { FaultWindow, FinalJob } from "../history.ts";
import type { Violation } from "../violation.ts";
import { checkRollbacks } from "./check-rollbacks.ts";
import type { Copy, RetryLine, SettleLine } from "./evidence.ts";
import type { Publish } from "./publishes.ts";
import { isExplained } from "./trouble.ts";

/** All that is known about one job that was to be published. */
export interface RoutedCase extends JobCase {
  readonly attempts: readonly Publish[];
  /** As often as the broker has it. */
  readonly copies: readonly Copy[];
  /** What the consumers' handlers did. */
  readonly runs: readonly Attempt[];
  readonly retries: readonly RetryLine[];
  readonly settles: readonly SettleLine[];
  /** The faults that a publish can feel, and those that can cost a relay its partitions. */
  readonly publishFaults: readonly FaultWindow[];
  readonly holderFaults: readonly FaultWindow[];
}

/** Judges one published job by what it was promised. */
export function checkRoutedJob(facts: RoutedCase): JobFindings {
  return {
    violations: [
      ...checkEarly(facts),
      ...checkNamed(facts),
      ...checkTokens(facts),
      ...checkPublishes(facts),
      ...checkCopies(facts),
      ...checkEnd(facts),
      ...checkCancels(facts),
      ...checkRollbacks(facts),
      ...checkConsumed(facts),
    ],
    excusedReruns: Math.max(0, facts.copies.length - 1),
  };
}

/** Nothing is published that was not named to its publisher, before. */
function checkNamed(facts: RoutedCase): Violation[] {
  return facts.attempts.flatMap(({ naming, startAtMs, node, token }) =>
    naming !== null && naming.atMs <= startAtMs
      ? []
      : broken(
          facts,
          "phantom",
          `token ${token} was published on ${node}, and was not named to it`,
          startAtMs,
        ),
  );
}

/** Tokens rise. One is published again only if its rollback could not be written. */
function checkTokens(facts: RoutedCase): Violation[] {
  const { attempts, holderFaults, retries } = facts;
  return attempts.flatMap((publish, index) => {
    const before = attempts[index - 1];
    if (before === undefined || publish.token > before.token) return [];
    const { token, node, startAtMs } = publish;
    if (token === before.token) {
      const couldNot = retries.some(
        (retry) => retry.phase === "rollback_write" && retry.token === token && retry.node === node,
      );
      if (couldNot && node === before.node) return [];
    } else if (faultOn(holderFaults, node, before.startAtMs, startAtMs) !== undefined) return [];
    const text = `token ${token} was published on ${node} after token ${before.token} on ${before.node}`;
    return broken(facts, "token", text, startAtMs);
  });
}

/** Between two publishes there must be a reason: the first was refused, or nobody knows for a reason, or its relay was struck. */
function checkPublishes(facts: RoutedCase): Violation[] {
  const attempts = facts.attempts.toSorted((a, b) => a.token - b.token || a.startAtMs - b.startAtMs);
  return attempts.flatMap((publish, index) => {
    const before = attempts[index - 1];
    if (before === undefined) return [];
    const why = whyTwice(facts, before, publish);
    return why === null
      ? []
      : broken(facts, "duplicated", `published again on ${publish.node}, ${why}`, publish.startAtMs);
  });
}

function whyTwice(
  { job, history, publishFaults, holderFaults }: RoutedCase,
  before: Publish,
  after: Publish,
): string | null {
  if (job.delivery === "at-most-once") return `after ${before.node}`;
  if (before.done) return `though its success on ${before.node} was accepted`;
  const how = before.answer?.how ?? null;
  if (how === "refused") return null;
  if (how === "ambiguous")
    return isExplained(history, publishFaults, before)
      ? null
      : `since the one on ${before.node} was ambiguous, although nothing happened to it`;
  const [fromMs, untilMs] = inOrder(before.claimedAtMs, after.startAtMs);
  return faultOn(holderFaults, before.node, fromMs, untilMs) === undefined
    ? `though nothing happened to ${before.node}`
    : null;
}

/** What the broker has is what it was given: nothing of what it refused, and each message once. */
function checkCopies(facts: RoutedCase): Violation[] {
  const { attempts, copies } = facts;
  const acknowledged = attempts.find(({ answer }) => answer?.how === "acknowledged");
  if (acknowledged !== undefined && copies.length === 0) {
    const text = `the broker acknowledged it to ${acknowledged.node}, and does not have it`;
    return broken(facts, "lost", text, acknowledged.startAtMs);
  }
  return [...Map.groupBy(copies, ({ token }) => token)].flatMap(([token, same]) => {
    const sent = attempts.filter((publish) => publish.token === token);
    const isRefused = sent.length > 0 && sent.every(({ answer }) => answer?.how === "refused");
    if (sent.length === 0)
      return broken(facts, "phantom", `the broker has token ${token}, which was never published`);
    if (isRefused)
      return broken(facts, "duplicated", `the broker has token ${token}, and its publish was refused`);
    if (same.length > sent.length)
      return broken(
        facts,
        "duplicated",
        `the broker has token ${token} ${same.length} times, and it was published ${sent.length} times`,
      );
    return [];
  });
}

/** Every acknowledged job has come to an end that its evidence supports. */
function checkEnd(facts: RoutedCase): Violation[] {
  const { final, copies, attempts } = facts;
  if (final === null) return checkUnknown(facts);
  const atMs = attempts.at(-1)?.startAtMs ?? null;
  if (!isTerminal(final.state)) return broken(facts, "stuck", `it is still ${final.state} at the end`, atMs);
  switch (final.state) {
    case "succeeded":
      return copies.length > 0
        ? []
        : broken(facts, "lost", "it is succeeded, and the broker does not have it", atMs);
    case "lost":
    case "dead":
      return checkGivenUp(facts, final);
    default:
      return wasCancelled(facts)
        ? []
        : broken(facts, "lost", "it is cancelled, but no cancel was requested", atMs);
  }
}

/** Only at-most-once is given up: dead when its publish was refused, lost when nobody knows; and never without a reason. */
function checkGivenUp(facts: RoutedCase, { state, reason }: FinalJob): Violation[] {
  const { job, attempts, history, publishFaults, holderFaults } = facts;
  const last = attempts.at(-1);
  const said = last?.answer?.error ?? null;
  const text = `it is ${state}: ${reason ?? "without a reason"}${said === null ? "" : ` (${said})`}`;
  if (job.delivery !== "at-most-once") return broken(facts, "lost", text, last?.startAtMs ?? null);
  if (last === undefined) {
    const struck = faultOn(holderFaults, null, job.dueAtMs, history.endedAtMs);
    return state === "lost" && struck !== undefined ? [] : broken(facts, "lost", text);
  }
  const isRefused = last.answer?.how === "refused";
  const struck = faultOn(holderFaults, last.node, last.claimedAtMs, settledByMs(facts, last));
  // Who was struck before it could write that it was refused leaves the next owner without knowledge.
  const excused =
    state === "lost" && isRefused
      ? struck !== undefined
      : struck !== undefined || isExplained(history, publishFaults, last);
  return excused && (state === "lost" || isRefused) ? [] : broken(facts, "lost", text, last.startAtMs);
}

/** When the end of a publish was written at the latest, as far as is known. */
function settledByMs({ settles, history }: RoutedCase, { token, node }: Publish): number {
  const settle = settles.find((one) => one.token === token && one.node === node && one.written);
  return (settle?.atMs ?? history.endedAtMs) + history.rules.leaseMs;
}

/** What the broker has was handled, and took effect as often as was promised. */
function checkConsumed(facts: RoutedCase): Violation[] {
  const { job, runs, effects, copies, final, history } = facts;
  const [, second] = runs;
  if (job.delivery === "at-most-once" && second !== undefined)
    return broken(facts, "duplicated", `its handler started again on ${second.node}`, second.startAtMs);
  if (effects.length > 1)
    return broken(facts, "duplicated", `${effects.length} effects were committed behind the broker`);
  if (copies.length === 0) return [];
  const isDone =
    job.delivery === "effectively-once" ? effects.length === 1 : runs.some(({ how }) => how === "returned");
  if (isDone) return [];
  // Whoever cancelled it was in time.
  if (final?.state === "cancelled" && !copies.some(({ kept }) => kept)) return [];
  // One that was begun there is never begun again.
  const struck = faultOn(history.faults, null, job.dueAtMs, history.endedAtMs);
  if (job.delivery === "at-most-once" && struck !== undefined) return [];
  return broken(facts, "lost", "the broker has it, and no consumer handled it to its end");
}
