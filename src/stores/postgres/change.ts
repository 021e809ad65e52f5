import type { JobState } from "../../job.ts";
import { endedStates, openStates, redrivableStates } from "../../state.ts";
import type {
  CancelOutcome,
  RedriveOutcome,
  RemoveOutcome,
  SelectParams,
  SelectResult,
  UpdateParams,
  UpdateResult,
} from "../../store/jobs.ts";
import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { clean, numberList, textList, toJson } from "./connection/encode.ts";
import { addReported } from "./connection/reported-notices.ts";
import { findIds } from "./questions.ts";
import { listOf, numberOf, recordOf, stateOrNull, textsOf } from "./rows.ts";
import type { Session } from "./session.ts";

export async function update(session: Session, params: UpdateParams): Promise<UpdateResult> {
  const change = {
    input: params.input,
    run_at: params.runAt?.getTime(),
    delay_ms: params.delayMs === undefined ? undefined : Math.trunc(params.delayMs),
    priority: params.priority,
    concurrency_key: params.concurrencyKey,
    rate_key: params.rateKey,
  };
  const answer = recordOf(
    await session.run(`select ${session.functions}.update_job($1, $2, $3, $4::text::jsonb)::text as answer`, [
      session.ns,
      session.now,
      params.id,
      toJson(change),
    ]),
  );
  tell(session, answer["notices"]);
  const { outcome } = answer;
  return {
    outcome: outcome === "updated" || outcome === "refused" ? outcome : "unknown",
    state: stateOrNull(answer["state"]),
  };
}

const cancelOutcomes = ["cancelled", "requested", "terminal"] as const;
const redriveOutcomes = ["redriven", "held", "refused"] as const;
const removeOutcomes = ["deleted", "held", "refused"] as const;

export function cancel(session: Session, params: SelectParams): Promise<SelectResult<CancelOutcome>> {
  return changeSelected(session, params, "cancel_jobs", openStates, cancelOutcomes);
}

export function redrive(session: Session, params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
  return changeSelected(session, params, "redrive_jobs", redrivableStates, redriveOutcomes);
}

export function remove(session: Session, params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
  return changeSelected(session, params, "remove_jobs", endedStates, removeOutcomes);
}

/** Chooses the jobs first, then processes them one by one: each is checked again when its turn comes. */
async function changeSelected<O extends string>(
  session: Session,
  { select, reason }: SelectParams,
  verb: "cancel_jobs" | "redrive_jobs" | "remove_jobs",
  states: readonly JobState[],
  outcomes: readonly O[],
): Promise<SelectResult<O | "unknown">> {
  const { ids, cursor } =
    "ids" in select ? { ids: select.ids, cursor: null } : await findIds(session, select, states);
  if (ids.length === 0) return { results: [], cursor };
  const answer = recordOf(
    await session.run(`select ${session.functions}.${verb}($1, $2, $3::text::text[], $4)::text as answer`, [
      session.ns,
      session.now,
      textList(ids),
      reason === null ? null : clean(reason),
    ]),
  );
  tell(session, answer["notices"]);
  const said = textsOf(answer["outcomes"]);
  const results = ids.map((id, place) => ({
    id,
    outcome: outcomes.find((outcome) => outcome === said[place]) ?? ("unknown" as const),
  }));
  return { results, cursor };
}

export async function prune(session: Session, params: PruneParams): Promise<PruneResult> {
  const kept = [params.succeededMs, params.cancelledMs, params.deadMs, params.lostMs];
  const [pruned, more] = listOf(
    await session.run(
      `select ${session.functions}.prune_jobs($1, $2, '{succeeded,cancelled,dead,lost}', $3::text::bigint[], $4, $5, $6)::text as answer`,
      [
        session.ns,
        session.now,
        numberList(kept.map(Math.trunc)),
        Math.trunc(params.nodesMs),
        Math.trunc(params.occurrencesMs),
        params.limit,
      ],
    ),
  );
  return { pruned: numberOf(pruned), more: more === true };
}

function tell(session: Session, told: unknown): void {
  const draft = new NoticeDraft();
  addReported(draft, told);
  session.publish(draft.toNotices());
}
