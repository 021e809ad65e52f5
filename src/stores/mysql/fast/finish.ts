import { follow, isPlainSuccess } from "../../../state.ts";
import type { Finish, FinishResult } from "../../../store/claims.ts";
import { perGroup } from "../../kept-counts.ts";
import { fixed, join, type Sql, sql } from "../connection/sql.ts";
import { highestSeq, writeCountsIf } from "../jobs/counts.ts";
import type { HeldJobs } from "../jobs/remembered.ts";
import { writeSucceeded } from "../jobs/succeeded.ts";
import type { Session } from "../session.ts";
import { go, type Part, runParts } from "./parts.ts";

/** Whether all are successes of remembered jobs, without duplicates. */
export function areSuccesses(held: HeldJobs, finishes: readonly Finish[]): boolean {
  const seqs = new Set<number>();
  for (const one of finishes) {
    const seq = held.of(one)?.seq;
    if (seq === undefined || !isPlainSuccess(one.outcome) || seqs.has(seq)) return false;
    seqs.add(seq);
  }
  return true;
}

/** Ends claims with success. */
export function finishFast(
  session: Session,
  claimer: string,
  finishes: readonly Finish[],
): Promise<FinishResult[] | null> {
  const part = finishPart(session, session.remembered.claimed, claimer, finishes, isPlain);
  return runParts(session, [part], ([finished]) => finished);
}

export const isPlain = fixed("relayed = 0");

/** @param kind what kind of jobs they must be. */
export function finishPart(
  session: Session,
  remembered: HeldJobs,
  claimer: string,
  finishes: readonly Finish[],
  kind: Sql,
): Part<FinishResult[]> {
  const { notices } = session;
  const jobs = finishes.flatMap((one) => remembered.of(one) ?? []);
  const held = new Map(finishes.map((one) => [remembered.of(one)?.seq ?? 0, one]));
  const state = follow("active", "succeed") as "succeeded";
  const none = finishes.length === 0;
  return {
    before: none ? [] : checkHeld(held, session.claimers.of(claimer), kind),
    condition: none ? fixed("true") : sql`@escapement_held = ${held.size} and @escapement_children = 0`,
    run() {
      const successes = [...held].map(([seq, { outcome }]) => ({
        seq,
        result: outcome.kind === "succeed" ? outcome.result : null,
      }));
      writeSucceeded(session, successes, go);
      writeCountsIf(session, state, perGroup(jobs), highestSeq(jobs), go);
      return {
        answers: [],
        read() {
          for (const one of finishes) {
            notices.ended(one.id);
            remembered.drop(one);
          }
          return finishes.map(() => ({ outcome: "written", state }));
        },
      };
    },
  };
}

/** Locks the rows, so no child and no other call gets in between. */
function checkHeld(held: ReadonlyMap<number, Finish>, claimer: number, kind: Sql): Sql[] {
  const seqs = [...held.keys()];
  const tokens = Map.groupBy(held, ([, { token }]) => token);
  const isMine = [...tokens].map(([token, own]) =>
    tokens.size === 1
      ? sql`token = ${token}`
      : sql`(token = ${token} and seq in (${own.map(([seq]) => seq)}))`,
  );
  return [
    sql`select count(*) into @escapement_held from escapement_jobs force index (primary)
      where seq in (${seqs}) and state = 'active' and claimer = ${claimer} and ${kind} and (${join(isMine, " or ")}) for update`,
    sql`select count(*) into @escapement_children from escapement_parents where parent in (${seqs})`,
  ];
}
