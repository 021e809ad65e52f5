import type { Outcome } from "../../state.ts";
import { follow, isTerminal, settle, story } from "../../state.ts";
import type { Row } from "./row.ts";
import type { Space } from "./space.ts";

const noParents: ReadonlySet<string> = new Set();

/** Ends a claim as its outcome says: the core decides, this writes it down. */
export function settleClaim(space: Space, row: Row, outcome: Outcome, now: number): void {
  const settlement = settle(row, outcome);
  const line = story(outcome);
  if (line !== null) space.tell(row, now, line.kind, line.text, line.error);
  const ended = isTerminal(settlement.state);
  space.write(row, {
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
  if (ended) tellChildren(space, row, now);
}

/** Cancels a job that is not held by anybody. */
export function cancelIdle(
  space: Space,
  row: Row,
  transition: "cancel" | "expire",
  reason: string | null,
  now: number,
): void {
  writeCancelled(space, row, transition, reason, now);
  tellChildren(space, row, now);
}

function writeCancelled(
  space: Space,
  row: Row,
  transition: "cancel" | "expire",
  reason: string | null,
  now: number,
): void {
  for (const parent of row.waitsFor) space.jobs.get(parent)?.children.delete(row.id);
  const state = follow(row.state, transition);
  space.write(row, { state, reason, finishedAt: now, waitsFor: noParents });
}

/** Tells the end of a job to those that wait for it, and theirs to those that wait for them, without recursion. */
function tellChildren(space: Space, ended: Row, now: number): void {
  const news = [ended];
  for (const parent of news) {
    space.notices.ended(parent.id);
    for (const id of [...parent.children]) {
      const child = space.jobs.get(id);
      if (child !== undefined && hearEnd(space, child, parent, now)) news.push(child);
    }
    parent.children.clear();
  }
}

/** Returns whether the child ended too. */
function hearEnd(space: Space, child: Row, parent: Row, now: number): boolean {
  if (parent.state !== "succeeded" && child.afterFailure === "cancel") {
    writeCancelled(space, child, "cancel", orphanReason(parent), now);
    return true;
  }
  const waitsFor = new Set(child.waitsFor);
  waitsFor.delete(parent.id);
  const state = waitsFor.size === 0 ? follow(child.state, "unblock") : child.state;
  space.write(child, { waitsFor, state });
  return false;
}

export function orphanReason(parent: Row): string {
  return `its parent ${parent.id} is ${parent.state}`;
}
