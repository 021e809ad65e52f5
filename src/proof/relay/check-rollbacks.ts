import { faultOn } from "../attempts.ts";
import { broken } from "../check-job.ts";
import type { Violation } from "../violation.ts";
import type { RoutedCase } from "./check-routed-job.ts";
import { type Publish, refOf } from "./publishes.ts";

/** How long after an answer a relay may have told of it. */
const tellWithinMs = 500;

/** One publish that failed costs one rollback, which is counted once, and no attempt. */
export function checkRollbacks(facts: RoutedCase): Violation[] {
  const { attempts, job, final } = facts;
  const counted = attempts.find(({ attempt }) => attempt !== 1);
  if (counted !== undefined) {
    const text = `it was published as attempt ${counted.attempt}, and a rollback costs no attempt`;
    return broken(facts, "rollback", text, counted.startAtMs);
  }
  if (final !== null && final.attempt > 1)
    return broken(facts, "rollback", `it has used ${final.attempt} attempts, and a rollback costs none`);
  if (job.delivery === "at-most-once") return [];
  const failed = attempts.filter(({ answer }) => answer !== null && answer.how !== "acknowledged");
  return [
    ...checkStored(facts, failed.length + heldBack(facts)),
    ...[...Map.groupBy(failed, refOf).values()].flatMap((same) => checkTold(facts, same)),
  ];
}

/** Publishes that a relay gave up before it had sent them: it was struck between the two, and their time was over. */
function heldBack({ attempts, retries, holderFaults }: RoutedCase): number {
  const sent = new Set(attempts.map(refOf));
  return retries.filter(
    (retry) =>
      retry.phase === "publish" &&
      !retry.ambiguous &&
      !sent.has(refOf(retry)) &&
      faultOn(holderFaults, retry.node, retry.atMs - tellWithinMs, retry.atMs) !== undefined,
  ).length;
}

/** What the store counts lies between what it was seen to write and what can have been written. */
function checkStored(facts: RoutedCase, failed: number): Violation[] {
  const { final, settles } = facts;
  const written = settles.filter((settle) => settle.outcome === "rollback" && settle.written).length;
  if (final === null || (final.rollbacks >= written && final.rollbacks <= failed)) return [];
  const text = `the store counts ${final.rollbacks} rollbacks; ${written} were written, and ${failed} publishes failed`;
  return broken(facts, "rollback", text);
}

/** Each failure is told once, with its phase; only a relay that was struck may not have come to it. */
function checkTold(facts: RoutedCase, same: readonly Publish[]): Violation[] {
  const [first] = same;
  const last = same.at(-1);
  if (first === undefined || last === undefined) return [];
  const told = facts.retries.filter((retry) => retry.phase === "publish" && refOf(retry) === refOf(first));
  if (told.length === same.length) return [];
  const untilMs = (last.answer?.atMs ?? last.startAtMs) + tellWithinMs;
  const struck = faultOn(facts.holderFaults, first.node, first.claimedAtMs, untilMs);
  if (told.length < same.length && struck !== undefined) return [];
  const text = `${same.length} publishes of token ${first.token} failed on ${first.node}, and ${told.length} were reported`;
  return broken(facts, "rollback", text, first.startAtMs);
}
