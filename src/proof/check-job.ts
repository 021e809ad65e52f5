import { isTerminal } from "../state.ts";
import { type Attempt, answerLost, faultOn } from "./attempts.ts";
import type { ExpectedJob } from "./expected-jobs.ts";
import type { Effect, FinalJob, History } from "./history.ts";
import type { Copy } from "./relay/evidence.ts";
import type { Violation, ViolationKind } from "./violation.ts";

/** All that is known about one job that was asked for. */
export interface JobCase {
  readonly history: History;
  readonly job: ExpectedJob;
  readonly attempts: readonly Attempt[];
  readonly effects: readonly Effect[];
  readonly final: FinalJob | null;
  /** Of a job that was published: as often as the broker has it. */
  readonly copies?: readonly Copy[];
}

export interface JobFindings {
  readonly violations: readonly Violation[];
  /** Second dispatches that a fault excuses. */
  readonly excusedReruns: number;
}

/** Judges one job by what it was promised. */
export function checkJob(facts: JobCase): JobFindings {
  const dispatches = checkDispatches(facts);
  return {
    violations: [
      ...checkEarly(facts),
      ...checkTokens(facts),
      ...dispatches.violations,
      ...checkEnd(facts),
      ...checkCancels(facts),
      ...checkStale(facts),
      ...checkEffects(facts),
    ],
    excusedReruns: dispatches.excusedReruns,
  };
}

export function broken(
  { job }: JobCase,
  kind: ViolationKind,
  detail: string,
  atMs: number | null = null,
): Violation[] {
  return [{ kind, delivery: job.delivery, subject: job.id, detail, atMs }];
}

export function checkEarly(facts: JobCase): Violation[] {
  const [first] = facts.attempts;
  const { precisionMs } = facts.history.rules;
  if (first === undefined || first.startAtMs >= facts.job.dueAtMs - precisionMs) return [];
  const byMs = Math.round(facts.job.dueAtMs - first.startAtMs);
  return broken(facts, "early", `it started ${byMs} ms before its time`, first.startAtMs);
}

/** Tokens rise. Only a process that was held up between its claim and its first line may come late; a token starts once in any case. */
function checkTokens(facts: JobCase): Violation[] {
  const { attempts, history } = facts;
  return attempts.flatMap((attempt, index) => {
    const before = attempts[index - 1];
    if (before === undefined || attempt.token > before.token) return [];
    const heldUp = faultOn(history.faults, attempt.node, before.startAtMs, attempt.startAtMs);
    if (attempt.token < before.token && heldUp !== undefined) return [];
    const text = `token ${attempt.token} started on ${attempt.node} after token ${before.token} on ${before.node}`;
    return broken(facts, "token", text, attempt.startAtMs);
  });
}

/** Between two dispatches there must be a reason: a failure that its script asked for, or a fault. */
function checkDispatches(facts: JobCase): JobFindings {
  const { history, job } = facts;
  const attempts = facts.attempts.toSorted((a, b) => a.token - b.token);
  const violations: Violation[] = [];
  let excusedReruns = 0;
  for (const [index, attempt] of attempts.entries()) {
    const before = attempts[index - 1];
    if (before === undefined) continue;
    if (job.delivery === "at-most-once") {
      const text = `dispatched again on ${attempt.node}, after ${before.node}`;
      violations.push(...broken(facts, "duplicated", text, attempt.startAtMs));
      continue;
    }
    if (before.done) {
      const text = `dispatched again on ${attempt.node} though its success on ${before.node} was accepted`;
      violations.push(...broken(facts, "duplicated", text, attempt.startAtMs));
      continue;
    }
    const [fromMs, untilMs] = inOrder(before.claimedAtMs, attempt.startAtMs);
    const excuse = faultOn(history.faults, before.node, fromMs, untilMs);
    if (before.how === "threw") {
      const waitedMs = attempt.startAtMs - (before.endAtMs ?? 0);
      if (excuse === undefined && waitedMs < history.rules.retryMs - history.rules.precisionMs) {
        const text = `tried again ${Math.round(waitedMs)} ms after it failed`;
        violations.push(...broken(facts, "early", text, attempt.startAtMs));
      }
    } else if (before.how === "refused" && earlierHolderStruck(facts, attempt)) {
      // Its transaction met what that one had left behind.
      excusedReruns += 1;
    } else if (excuse === undefined) {
      const text = `dispatched again on ${attempt.node} though nothing happened to ${before.node}`;
      violations.push(...broken(facts, "duplicated", text, attempt.startAtMs));
    } else excusedReruns += 1;
  }
  return { violations, excusedReruns };
}

function earlierHolderStruck({ attempts, history }: JobCase, { startAtMs }: Attempt): boolean {
  return attempts.some(
    (one) =>
      one.startAtMs < startAtMs &&
      faultOn(history.faults, one.node, one.claimedAtMs, startAtMs) !== undefined,
  );
}

/** Every acknowledged job has come to an end that its evidence supports. */
function checkEnd(facts: JobCase): Violation[] {
  const { final } = facts;
  if (final === null) return checkUnknown(facts);
  if (!isTerminal(final.state))
    return broken(facts, "stuck", `it is still ${final.state} at the end`, lastStart(facts));
  switch (final.state) {
    case "succeeded":
      return checkSuccess(facts, final);
    case "lost":
      return checkLost(facts);
    case "dead":
      return checkDeath(facts, final);
    default:
      return wasCancelled(facts)
        ? []
        : broken(facts, "lost", "it is cancelled, but no cancel was requested", lastStart(facts));
  }
}

/** The store does not know it. */
export function checkUnknown(facts: JobCase): Violation[] {
  const { certain, occurrence } = facts.job;
  if (!certain) return [];
  return occurrence === null
    ? broken(facts, "lost", "it was acknowledged, and the store does not know it")
    : broken(facts, "missed", "it was due, and the store does not know it");
}

function checkSuccess(facts: JobCase, final: FinalJob): Violation[] {
  const { attempts, effects, job } = facts;
  // A transaction's commit may be the last thing a process did: the effect itself is the evidence then.
  const complete =
    attempts.some(({ how, token }) => how === "returned" && token === final.resultToken) ||
    (job.delivery === "effectively-once" && effects.length > 0);
  if (complete) return [];
  return broken(
    facts,
    "lost",
    `it is succeeded, and no run of token ${final.resultToken ?? "?"} came to its end`,
  );
}

function checkLost(facts: JobCase): Violation[] {
  const { job, attempts, history } = facts;
  if (job.delivery !== "at-most-once") return broken(facts, "lost", "only at-most-once may end as lost");
  const last = attempts.at(-1);
  const excused =
    last === undefined
      ? faultOn(history.faults, null, job.dueAtMs, history.endedAtMs)
      : faultOn(
          history.faults,
          last.node,
          last.claimedAtMs,
          (last.endAtMs ?? history.endedAtMs) + history.rules.leaseMs,
        );
  return excused === undefined
    ? broken(facts, "lost", "it was given up though nothing happened to its node", last?.startAtMs ?? null)
    : [];
}

function checkDeath(facts: JobCase, final: FinalJob): Violation[] {
  const { job, attempts } = facts;
  const threw = attempts.some(({ how }) => how === "threw");
  if (job.delivery === "at-most-once" && job.failures > 0 && threw) return [];
  return broken(facts, "lost", `it is dead: ${final.reason ?? "without a reason"}`, lastStart(facts));
}

/** A cancel whose first answer was lost on the way is asked again, and then finds the job ended: by itself. */
export function wasCancelled({ job, history }: JobCase): boolean {
  return job.cancels.some(
    ({ answer, outcome, invokedAtMs, endedAtMs }) =>
      outcome === "info" ||
      answer === "cancelled" ||
      answer === "requested" ||
      (answer === "terminal" && answerLost(history.faults, invokedAtMs, endedAtMs)),
  );
}

/** A confirmed cancel of a job that was waiting holds for ever. */
export function checkCancels(facts: JobCase): Violation[] {
  const { job, attempts, final, history } = facts;
  const confirmed = job.cancels.find(({ answer, outcome }) => outcome === "ok" && answer === "cancelled");
  if (confirmed === undefined) return [];
  // One that was held up between an old claim and its first line may come late; a new claim may not come at all.
  const late = attempts.find(
    ({ startAtMs, node, token }) =>
      startAtMs > confirmed.endedAtMs &&
      (token > (final?.token ?? 0) ||
        faultOn(history.faults, node, confirmed.invokedAtMs, startAtMs) === undefined),
  );
  if (late !== undefined)
    return broken(
      facts,
      "cancelled-ran",
      `it started on ${late.node} after its cancel was confirmed`,
      late.startAtMs,
    );
  if (final !== null && final.state !== "cancelled")
    return broken(facts, "cancelled-ran", `its cancel was confirmed, and it is ${final.state}`);
  return [];
}

/** Only the last holder's word counts, and an accepted word stays accepted. */
function checkStale(facts: JobCase): Violation[] {
  const { attempts, final } = facts;
  if (final === null) return [];
  const done = attempts.filter((attempt) => attempt.done);
  const [first, second] = done;
  if (first !== undefined && second !== undefined) {
    const text = `two successes were accepted, of token ${first.token} on ${first.node} and ${second.token} on ${second.node}`;
    return broken(facts, "stale-accepted", text, second.startAtMs);
  }
  if (first !== undefined && (final.state !== "succeeded" || final.resultToken !== first.token)) {
    const text = `the success of token ${first.token} on ${first.node} was accepted, and it is ${final.state} with the result of token ${final.resultToken ?? "none"}`;
    return broken(facts, "stale-accepted", text, first.startAtMs);
  }
  const taken = final.state === "succeeded" && final.resultToken !== null ? final.resultToken : final.token;
  if (taken === final.token) return [];
  return broken(facts, "stale-accepted", `the result of token ${taken} was kept under token ${final.token}`);
}

function checkEffects(facts: JobCase): Violation[] {
  const { job, effects, final, history } = facts;
  if (job.delivery !== "effectively-once") return [];
  const [first] = effects;
  if (effects.length > 1) {
    const tokens = effects.map(({ token }) => token).join(", ");
    return broken(facts, "duplicated", `${effects.length} effects were committed, by tokens ${tokens}`);
  }
  if (final?.state === "succeeded" && first === undefined)
    return broken(facts, "lost", "it is succeeded without an effect");
  if (first === undefined || history.rules.effectsWith === "inbox") return [];
  if (final?.state !== "succeeded")
    return broken(facts, "stale-accepted", `its effect is committed, and it is ${final?.state ?? "unknown"}`);
  return first.token === final.resultToken
    ? []
    : broken(
        facts,
        "stale-accepted",
        `the effect of token ${first.token} was committed under the success of token ${final.resultToken ?? "?"}`,
      );
}

function lastStart({ attempts }: JobCase): number | null {
  return attempts.at(-1)?.startAtMs ?? null;
}

export function inOrder(a: number, b: number): readonly [number, number] {
  return a <= b ? [a, b] : [b, a];
}
