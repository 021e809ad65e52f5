import type { Outcome } from "../../state.ts";
import { follow, isOrphan, isTerminal, orphanReason, settle, story } from "../../state.ts";
import type { Data } from "./data/data.ts";
import type { Row } from "./rows.ts";

const noParents: ReadonlySet<string> = new Set();

/** Ends a claim by its outcome: the core decides, this writes it down. */
export function settleClaim(data: Data, row: Row, outcome: Outcome, now: number): void {
  const settlement = settle(row, outcome);
  const line = story(outcome);
  if (line !== null) data.tell(row, now, line.kind, line.text, line.error);
  const ended = isTerminal(settlement.state);
  data.write(row, {
    state: settlement.state,
    reason: settlement.reason,
    attempt: settlement.attempt,
    crashes: settlement.crashes,
    rollbacks: row.rollbacks + settlement.rollbacks,
    runAt: settlement.delayMs === null ? row.runAt : now + settlement.delayMs,
    error: settlement.error ?? row.error,
    result: settlement.result,
    finishedAt: ended ? now : null,
    leaseUntil: null,
  });
  if (ended) tellChildren(data, row, now);
}

/** Cancels a job that is not claimed. */
export function cancelIdle(
  data: Data,
  row: Row,
  transition: "cancel" | "expire",
  reason: string | null,
  now: number,
): void {
  writeCancelled(data, row, transition, reason, now);
  tellChildren(data, row, now);
}

function writeCancelled(
  data: Data,
  row: Row,
  transition: "cancel" | "expire",
  reason: string | null,
  now: number,
): void {
  for (const parent of row.waitsFor) data.jobs.get(parent)?.children.delete(row.id);
  const state = follow(row.state, transition);
  data.write(row, { state, reason, finishedAt: now, waitsFor: noParents });
}

/** Passes the end of a job on to its children, and theirs to their children, without recursion. */
function tellChildren(data: Data, ended: Row, now: number): void {
  const parents = [ended];
  for (const parent of parents) {
    data.notices.draft.ended(parent.id);
    for (const id of [...parent.children]) {
      const child = data.jobs.get(id);
      if (child !== undefined && hearEnd(data, child, parent, now)) parents.push(child);
    }
    parent.children.clear();
  }
}

/** Returns whether the child ended too. */
function hearEnd(data: Data, child: Row, parent: Row, now: number): boolean {
  if (isOrphan(child, parent.state)) {
    writeCancelled(data, child, "cancel", orphanReason(parent), now);
    return true;
  }
  const waitsFor = new Set(child.waitsFor);
  waitsFor.delete(parent.id);
  const state = waitsFor.size === 0 ? follow(child.state, "unblock") : child.state;
  data.write(child, { waitsFor, state });
  return false;
}
