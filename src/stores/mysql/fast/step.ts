import type { ClaimParams, Finish, StepResult } from "../../../store/claims.ts";
import { aheadOf } from "../../choose.ts";
import type { Identity } from "../connection/identity.ts";
import type { Session } from "../session.ts";
import { claimPart } from "./claim.ts";
import { areSuccesses, finishPart, isPlain } from "./finish.ts";
import { runParts } from "./parts.ts";

/** Whether the fast path can be tried, without asking the server: the finishes are successes of plain jobs that this handle holds. */
export function mayStepFast(
  { remembered }: Identity,
  finishes: readonly Finish[],
  params: ClaimParams | null,
): boolean {
  if (!areSuccesses(remembered.claimed, finishes)) return false;
  if (params === null) return finishes.length > 0;
  return !remembered.obstructed && params.limit + aheadOf(params) > 0;
}

/** What almost every step does: finish some plain jobs that succeeded, claim the next plain ones. */
export async function stepFast(
  session: Session,
  finishes: readonly Finish[],
  params: ClaimParams,
): Promise<StepResult | null> {
  const part = finishPart(session, session.remembered.claimed, params.claimer, finishes, isPlain);
  const parts = [part, claimPart(session, params)] as const;
  return runParts(session, parts, ([finished, claimed]) => ({ finished, claimed }));
}
