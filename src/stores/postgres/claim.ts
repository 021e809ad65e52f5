import { isPlainSuccess } from "../../state.ts";
import type {
  ClaimParams,
  ClaimResult,
  Finish,
  FinishParams,
  FinishResult,
  StepParams,
  StepResult,
} from "../../store/claims.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { numberList, textList, toJson } from "./connection/encode.ts";
import type { Value } from "./connection/link.ts";
import { addReported } from "./connection/reported-notices.ts";
import type { ClaimedSeqs } from "./jobs/claimed-seqs.ts";
import { endingOf } from "./jobs/endings.ts";
import {
  dateOf,
  dateOrNull,
  listOf,
  numberOf,
  recordOf,
  stateOf,
  stateOrNull,
  textOf,
  toClaimedJobs,
  tuplesOf,
} from "./rows.ts";
import type { Session } from "./session.ts";

/** A call of a server function, with `?` for its values, and how to read what it returns. */
interface Call<T> {
  readonly sql: string;
  readonly values: readonly Value[];
  read(answer: unknown, draft: NoticeDraft): T;
}

export async function claim(session: Session, params: ClaimParams): Promise<ClaimResult> {
  const [claimed] = await together(session, claimCall(session, params, true));
  return claimed;
}

export async function finish(session: Session, params: FinishParams): Promise<FinishResult[]> {
  if (params.finishes.length === 0) return [];
  const [finished] = await together(session, finishCall(session, params.claimer, params.finishes));
  return finished;
}

export async function step(session: Session, params: StepParams): Promise<StepResult> {
  const claiming = claimCall(session, params.claim, params.finishes.length === 0);
  if (params.finishes.length === 0) {
    const [claimed] = await together(session, claiming);
    return { finished: [], claimed };
  }
  const finishing = finishCall(session, params.claim.claimer, params.finishes);
  const [finished, claimed] = await together(session, finishing, claiming);
  return { finished, claimed };
}

/** Makes the calls in one statement, from left to right, and publishes what they changed. */
async function together<T extends readonly unknown[]>(
  session: Session,
  ...calls: { readonly [K in keyof T]: Call<T[K]> }
): Promise<T> {
  let place = 0;
  const list = calls.map(({ sql }) =>
    sql.replaceAll("?", () => {
      place += 1;
      return `$${place}`;
    }),
  );
  const values = calls.flatMap((call) => call.values);
  const answer = await session.run(
    `select json_build_array(${list.join(", ")})::text as answer`,
    values,
    true,
  );
  const draft = new NoticeDraft();
  const answers = listOf(answer);
  const results = calls.map((call, index) => call.read(answers[index], draft));
  session.publish(draft.toNotices());
  return results as unknown as T;
}

/** @param quiet whether nothing else is written with it. */
function claimCall(
  { functions, ns, now, claimed }: Session,
  params: ClaimParams,
  quiet: boolean,
): Call<ClaimResult> {
  const queues = params.queues?.filter(({ limit }) => limit > 0) ?? null;
  const { names } = params;
  return {
    sql: `${functions}.claim_jobs(row(?, ?, null, ?, ?, ?, ?, ?, ?, ?, ?::text::text[], ?::text::integer[], ?::text::text[],
      ?::text::integer[], ?::text::integer[], ?::text::bigint[])::${functions}.ask)`,
    values: [
      ns,
      now,
      params.claimer,
      params.sequence,
      Math.trunc(params.leaseMs),
      Math.max(0, params.limit),
      Math.max(0, params.ahead ?? 0),
      params.alone,
      quiet,
      queues && textList(queues.map(({ queue }) => queue)),
      queues && numberList(queues.map(({ limit }) => limit)),
      textList(names.map(({ name }) => name)),
      numberList(names.map(({ concurrency }) => concurrency)),
      numberList(names.map(({ rate }) => rate?.limit ?? null)),
      numberList(names.map(({ rate }) => rate?.perMs ?? null)),
    ],
    read: (answer) => toClaimResult(answer, claimed),
  };
}

function toClaimResult(answer: unknown, claimed: ClaimedSeqs): ClaimResult {
  const { outcome, jobs, now, nextAt, fragile } = recordOf(answer);
  if (jobs !== null) noteSeqs(listOf(jobs), claimed);
  return {
    outcome: outcome === "stale" ? "stale" : "claimed",
    jobs: jobs === null ? [] : toClaimedJobs(listOf(jobs)),
    now: dateOf(now),
    nextAt: dateOrNull(nextAt),
    fragile: fragile === true,
  };
}

function noteSeqs(columns: readonly unknown[], claimed: ClaimedSeqs): void {
  claimed.note(listOf(columns[0]).map(textOf), listOf(columns[13]).map(numberOf));
}

/** Ends claims of jobs that do not belong to the relay. */
function finishCall(session: Session, claimer: string, finishes: readonly Finish[]): Call<FinishResult[]> {
  const { functions, ns, now } = session;
  const ids = finishes.map(({ id }) => id);
  const tokens = numberList(finishes.map(({ token }) => token));
  const results = finishes.map(({ outcome }) => (isPlainSuccess(outcome) ? outcome.result : undefined));
  const seqs = session.claimed.take(ids);
  if (results.every((result) => result !== undefined) && new Set(ids).size === ids.length) {
    const none = results.every((result) => result === null);
    const [which, asked]: [string, Value[]] =
      seqs === null
        ? [`${functions}.seqs_of(?, ?::text::text[])`, [ns, textList(ids)]]
        : ["?::text::bigint[]", [numberList(seqs)]];
    return {
      sql: `${functions}.finish_succeeded(?, ?, ?, null, null, ${which}, ?::text::integer[], ?::text::text[])`,
      values: [ns, now, claimer, ...asked, tokens, none ? null : textList(results)],
      read: (answer, draft) => readSucceeded(ids, answer, draft),
    };
  }
  return {
    sql: `${functions}.finish_any(?, ?, ?, null, null, ?::text::text[], ?::text::integer[], ?::text::json)`,
    values: [ns, now, claimer, textList(ids), tokens, endingsOf(finishes)],
    read: readFinished,
  };
}

export function endingsOf(finishes: readonly Finish[]): string {
  return toJson(finishes.map(({ outcome }) => endingOf(outcome)));
}

/** Null, or {missed: [[place, outcome, state]], notices}. */
export function readSucceeded(ids: readonly string[], answer: unknown, draft: NoticeDraft): FinishResult[] {
  const missed = new Map<number, FinishResult>();
  if (answer !== null) {
    const told = recordOf(answer);
    addReported(draft, told["notices"]);
    for (const [place, outcome, state] of tuplesOf(told["missed"] ?? [])) {
      missed.set(numberOf(place), { outcome: toOutcome(outcome), state: stateOrNull(state) });
    }
  }
  return ids.map((id, place) => {
    const other = missed.get(place);
    if (other !== undefined) return other;
    draft.ended(id);
    return { outcome: "written", state: "succeeded" };
  });
}

/** From finish_any. */
export function readFinished(answer: unknown, draft: NoticeDraft): FinishResult[] {
  const { results, notices: told } = recordOf(answer);
  addReported(draft, told);
  return tuplesOf(results).map(([outcome, state]) => ({
    outcome: toOutcome(outcome),
    state: outcome === "written" ? stateOf(state) : stateOrNull(state),
  }));
}

function toOutcome(value: unknown): FinishResult["outcome"] {
  return value === "written" || value === "repeated" ? value : "stale";
}
