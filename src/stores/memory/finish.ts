import { settle } from "../../state.ts";
import type { ClaimRef, Finish, FinishParams, FinishResult } from "../../store/claims.ts";
import type { Data } from "./data/data.ts";
import { settleClaim } from "./end.ts";
import type { Row } from "./rows.ts";
import type { Session } from "./session.ts";

/** The row, if its holder still has this claim. The relay's claims are fenced by epochs and never held here. */
export function held(data: Data, claimer: string, { id, token }: ClaimRef): Row | undefined {
  const row = data.jobs.get(id);
  return row !== undefined && !row.relayed && isHeldBy(row, claimer, token) ? row : undefined;
}

function isHeldBy(row: Row, claimer: string, token: number): boolean {
  return row.state === "active" && row.token === token && row.claimer === claimer;
}

export function finish({ data, now }: Session, params: FinishParams): FinishResult[] {
  return finishAll(data, params.claimer, params.finishes, now, (row) => !row.relayed);
}

/** Ends those claims that belong to the claimer; `mine` says whether this verb may end a job at all. */
export function finishAll(
  data: Data,
  claimer: string,
  finishes: readonly Finish[],
  now: number,
  mine: (row: Row) => boolean,
): FinishResult[] {
  // An outcome that the core refuses must throw before anything is written, even if it follows another one of the same claim.
  for (const { id, token, outcome } of finishes) {
    const row = data.jobs.get(id);
    if (row !== undefined && mine(row) && isHeldBy(row, claimer, token)) settle(row, outcome);
  }
  return finishes.map((one) => finishOne(data, claimer, one, now, mine));
}

function finishOne(
  data: Data,
  claimer: string,
  { id, token, outcome }: Finish,
  now: number,
  mine: (row: Row) => boolean,
): FinishResult {
  const row = data.jobs.get(id);
  if (row === undefined) return { outcome: "stale", state: null };
  if (mine(row) && isHeldBy(row, claimer, token)) {
    settleClaim(data, row, outcome, now);
    data.write(row, { finished: { token, claimer }, ahead: false });
    return { outcome: "written", state: row.state };
  }
  const repeated = row.finished?.token === token && row.finished.claimer === claimer;
  return { outcome: repeated ? "repeated" : "stale", state: row.state };
}
