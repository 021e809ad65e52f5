import type {
  CancelOutcome,
  RedriveOutcome,
  RemoveOutcome,
  SelectParams,
  SelectResult,
  UpdateParams,
  UpdateResult,
} from "../../store/jobs.ts";
import type { PruneParams, PruneResult, ReapParams, ReapResult } from "../../store/reaping.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { marked, Reader } from "./connection/wire.ts";
import { filterJson } from "./jobs/filter.ts";
import { stateAt, stateNumber } from "./rows.ts";
import { type Session, spread } from "./session.ts";

export async function update(session: Session, params: UpdateParams): Promise<UpdateResult> {
  const json = JSON.stringify({
    id: params.id,
    ...(params.input === undefined ? {} : { input: params.input }),
    ...(params.runAt === undefined ? {} : { runAt: params.runAt.getTime() }),
    ...(params.delayMs === undefined ? {} : { delayMs: params.delayMs }),
    ...(params.priority === undefined ? {} : { priority: params.priority }),
    ...(params.concurrencyKey === undefined ? {} : { concurrencyKey: params.concurrencyKey ?? false }),
    ...(params.rateKey === undefined ? {} : { rateKey: params.rateKey ?? false }),
  });
  const [outcome, state = 0] = await session.numbers("update", session.placeOf(params.id), json);
  if (outcome === 0) return { outcome: "unknown", state: null };
  return { outcome: outcome === 1 ? "refused" : "updated", state: stateAt(state) };
}

const cancelOutcomes = ["unknown", "cancelled", "requested", "terminal"] as const;
const redriveOutcomes = ["unknown", "redriven", "held", "refused"] as const;
const removeOutcomes = ["unknown", "deleted", "held", "refused"] as const;

export function cancel(session: Session, params: SelectParams): Promise<SelectResult<CancelOutcome>> {
  return select(session, "cancel", params, cancelOutcomes);
}

export function redrive(session: Session, params: SelectParams): Promise<SelectResult<RedriveOutcome>> {
  return select(session, "redrive", params, redriveOutcomes);
}

export function remove(session: Session, params: SelectParams): Promise<SelectResult<RemoveOutcome>> {
  return select(session, "remove", params, removeOutcomes);
}

async function select<O extends string>(
  session: Session,
  script: "cancel" | "redrive" | "remove",
  { select: selection, reason }: SelectParams,
  outcomes: readonly [O, ...O[]],
): Promise<SelectResult<O>> {
  const why = marked(reason);
  const outcomeAt = (mark: number): O => outcomes[mark] ?? outcomes[0];
  if ("ids" in selection) {
    const results = await spread(
      session,
      selection.ids,
      (id) => session.placeOf(id),
      async (ids, index) => {
        const reader = new Reader(await session.text(script, index, JSON.stringify({ ids }), why));
        reader.f64();
        return ids.map((id) => ({ id, outcome: outcomeAt(reader.u8()) }));
      },
    );
    return { results, cursor: null };
  }
  const results: { id: string; outcome: O }[] = [];
  const scope = { verb: "change", order: "oldest", namespace: session.keyPrefix(0) } as const;
  // Where a selection continues: in which Redis slot, after which job.
  let [place = 0, seq = 0] = selection.cursor === null ? [] : readCursor(scope, selection.cursor, 2);
  // A script reads a bounded piece, which may return few jobs or none.
  while (place < session.slots && results.length < selection.limit) {
    const json = JSON.stringify({
      filter: filterJson(selection.filter),
      limit: selection.limit - results.length,
      cursor: seq,
    });
    const reader = new Reader(await session.text(script, place, json, why));
    seq = reader.f64();
    while (!reader.isAtEnd) {
      const outcome = outcomeAt(reader.u8());
      results.push({ id: reader.short(), outcome });
    }
    if (seq === 0) place += 1;
  }
  const hasMore = place < session.slots && selection.limit > 0;
  return { results, cursor: hasMore ? writeCursor(scope, [place, seq]) : null };
}

export async function reap(session: Session, { limit, until }: ReapParams): Promise<ReapResult> {
  const reaped: ReapResult["reaped"][number][] = [];
  let more = false;
  // Each server of a cluster has its own clock; the slowest one counts for all.
  let mark = Number.POSITIVE_INFINITY;
  const silentBy = until === undefined ? "" : Math.floor(until);
  for (const index of session.everySlot) {
    const answer = await session.text("reap", index, Math.max(0, limit - reaped.length), silentBy);
    const reader = new Reader(answer);
    more = reader.u8() === 1 || more;
    mark = Math.min(mark, Number(reader.short()));
    while (!reader.isAtEnd) {
      const [id, name, queue] = [reader.short(), reader.short(), reader.short()];
      reaped.push({ id, name, queue, state: stateAt(reader.u8()), reason: reader.marked() });
    }
  }
  return { reaped, more, mark };
}

/** How long a claimer's last sequence is remembered after its last claim: far longer than any claim's reply can take. */
const claimersMs = 30 * 24 * 3_600_000;

export async function prune(session: Session, params: PruneParams): Promise<PruneResult> {
  let pruned = 0;
  let more = false;
  for (const index of session.everySlot) {
    const json = JSON.stringify({
      kept: [
        [stateNumber("succeeded"), params.succeededMs],
        [stateNumber("cancelled"), params.cancelledMs],
        [stateNumber("dead"), params.deadMs],
        [stateNumber("lost"), params.lostMs],
      ],
      nodesMs: params.nodesMs,
      claimersMs,
      occurrencesMs: params.occurrencesMs,
      limit: params.limit - pruned,
    });
    const [gone = 0, left = 0] = await session.numbers("prune", index, json);
    pruned += gone;
    more = left === 1 || more;
  }
  return { pruned, more };
}
