import { settle } from "../../state.ts";
import type {
  ClaimRef,
  ExtendParams,
  ExtendResult,
  Finish,
  FinishParams,
  FinishResult,
  ReportParams,
} from "../../store.ts";
import { settleClaim } from "./end.ts";
import type { Row } from "./row.ts";
import type { Moment, Space } from "./space.ts";

/** The row, if this claim of it is still its holder's. The relay's claims are fenced by epochs and never held here. */
export function held(space: Space, claimer: string, { id, token }: ClaimRef): Row | undefined {
  const row = space.jobs.get(id);
  return row !== undefined && !row.relayed && isHeldBy(row, claimer, token) ? row : undefined;
}

function isHeldBy(row: Row, claimer: string, token: number): boolean {
  return row.state === "active" && row.token === token && row.claimer === claimer;
}

export function finish(space: Space, params: FinishParams, now: number): FinishResult[] {
  return finishAll(space, params.claimer, params.finishes, now, (row) => !row.relayed);
}

/** Ends those claims that are the claimer's; `mine` tells whether a job is at all for this verb to end. */
export function finishAll(
  space: Space,
  claimer: string,
  finishes: readonly Finish[],
  now: number,
  mine: (row: Row) => boolean,
): FinishResult[] {
  // An outcome that the core refuses must throw before anything is written, also where it hides behind another of the same claim.
  for (const { id, token, outcome } of finishes) {
    const row = space.jobs.get(id);
    if (row !== undefined && mine(row) && isHeldBy(row, claimer, token)) settle(row, outcome);
  }
  return finishes.map((one) => finishOne(space, claimer, one, now, mine));
}

function finishOne(
  space: Space,
  claimer: string,
  { id, token, outcome }: Finish,
  now: number,
  mine: (row: Row) => boolean,
): FinishResult {
  const row = space.jobs.get(id);
  if (row === undefined) return { outcome: "stale", state: null };
  if (mine(row) && isHeldBy(row, claimer, token)) {
    settleClaim(space, row, outcome, now);
    space.write(row, { finished: { token, claimer }, ahead: false });
    return { outcome: "written", state: row.state };
  }
  const repeated = row.finished?.token === token && row.finished.claimer === claimer;
  return { outcome: repeated ? "repeated" : "stale", state: row.state };
}

export function extend(space: Space, params: ExtendParams, moment: Moment): ExtendResult[] {
  return params.claims.map((claim) => {
    const row = held(space, params.claimer, claim);
    if (row === undefined) return { outcome: "stale", cancelRequested: false };
    space.write(row, { leaseUntil: moment.monotonic + params.leaseMs, ahead: false });
    return { outcome: "extended", cancelRequested: row.cancelRequested };
  });
}

export function report(space: Space, params: ReportParams, now: number): void {
  for (const entry of params.reports) {
    const row = held(space, params.claimer, entry);
    if (row === undefined) continue;
    if (entry.progress !== undefined) space.write(row, { progress: entry.progress });
    for (const line of entry.lines) space.tell(row, now, "log", line);
  }
}
