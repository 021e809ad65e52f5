import { silence } from "../../state.ts";
import type { ClaimRef, ExtendParams, ExtendResult, ReportParams } from "../../store/claims.ts";
import type { ReapParams, ReapResult } from "../../store/reaping.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { numberList, textList, toJson } from "./connection/encode.ts";
import { addReported } from "./connection/reported-notices.ts";
import { endingOf } from "./jobs/endings.ts";
import { listOf, numberOf, recordOf, stateOf, textOf, textOrNull, tuplesOf } from "./rows.ts";
import type { Session } from "./session.ts";

export async function extend(session: Session, params: ExtendParams): Promise<ExtendResult[]> {
  const claims = new Map(params.claims.map((claim) => [keyOf(claim), claim]));
  if (claims.size === 0) return [];
  const asked = [...claims.values()];
  const answer = await session.run(
    `select ${session.functions}.extend_claims($1, $2, $3, $4, $5::text::text[], $6::text::integer[])::text as answer`,
    [
      session.ns,
      session.now,
      params.claimer,
      Math.trunc(params.leaseMs),
      textList(asked.map(({ id }) => id)),
      numberList(asked.map(({ token }) => token)),
    ],
    true,
  );
  const { renewed, locked } = recordOf(answer);
  const results = new Map<string, ExtendResult>();
  const note = (place: unknown, result: ExtendResult): void => {
    const claim = asked[numberOf(place)];
    if (claim !== undefined) results.set(keyOf(claim), result);
  };
  for (const [place, cancelRequested] of tuplesOf(renewed))
    note(place, { outcome: "extended", cancelRequested: cancelRequested === true });
  for (const place of listOf(locked)) note(place, { outcome: "locked", cancelRequested: false });
  return params.claims.map((claim) => results.get(keyOf(claim)) ?? stale);
}

const stale: ExtendResult = { outcome: "stale", cancelRequested: false };

/** A claim may appear twice in one call; the server renews it once. */
function keyOf({ id, token }: ClaimRef): string {
  return `${token} ${id}`;
}

export async function report(session: Session, params: ReportParams): Promise<void> {
  if (params.reports.length === 0) return;
  await session.run(
    `select to_json(${session.functions}.report_progress($1, $2, $3, $4::text::json)::text)::text as answer`,
    [session.ns, session.now, params.claimer, toJson(params.reports)],
  );
}

const silent = toJson(endingOf(silence({ ahead: false })));
const unstarted = toJson(endingOf(silence({ ahead: true })));

export async function reap(session: Session, { limit, until }: ReapParams): Promise<ReapResult> {
  const answer = await session.run(
    `select ${session.functions}.reap_jobs($1, $2, $3, $4, $5::text::json, $6::text::json)::text as answer`,
    [session.ns, session.now, limit, until === undefined ? null : Math.floor(until), silent, unstarted],
  );
  const { reaped, more, mark, notices: told } = recordOf(answer);
  const draft = new NoticeDraft();
  addReported(draft, told);
  session.publish(draft.toNotices());
  return {
    reaped: tuplesOf(reaped).map(([id, name, queue, state, reason]) => ({
      id: textOf(id),
      name: textOf(name),
      queue: textOf(queue),
      state: stateOf(state),
      reason: textOrNull(reason),
    })),
    more: more === true,
    mark: numberOf(mark),
  };
}
