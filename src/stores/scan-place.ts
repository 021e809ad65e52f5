import type { JobState } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { ScanFilter, ScanParams } from "../store/questions.ts";
import { type CursorScope, readCursor, writeCursor } from "./cursor.ts";

/** A job's place in the order of a scan. `at` is its end, or 0 in the order of enqueueing. */
export interface ScanPlace {
  readonly at: number;
  readonly seq: number;
}

const ends: readonly JobState[] = ["succeeded", "dead", "lost", "cancelled"];

/** The terminal states that a filter can match. */
export function endStatesOf({ states }: ScanFilter): readonly JobState[] {
  return [...new Set(states?.filter(isTerminal) ?? ends)];
}

export function scopeOf({ by, order }: ScanParams, namespace: string | number): CursorScope {
  return { verb: by === "ended" ? "ends" : "scan", order, namespace };
}

/** Behind which place a scan continues; null: from its start. */
export function readPlace(scope: CursorScope, cursor: string | null): ScanPlace | null {
  if (cursor === null) return null;
  if (scope.verb === "scan") return { at: 0, seq: readCursor(scope, cursor, 1)[0] ?? 0 };
  const [at = 0, seq = 0] = readCursor(scope, cursor, 2);
  return { at, seq };
}

export function writePlace(scope: CursorScope, { at, seq }: ScanPlace): string {
  return writeCursor(scope, scope.verb === "scan" ? [seq] : [at, seq]);
}

export function comparePlaces(a: ScanPlace, b: ScanPlace): number {
  return a.at - b.at || a.seq - b.seq;
}

export interface Scanned {
  /** How many jobs there were to look at, or one more than were to be. */
  readonly total: number;
  readonly lookAt: number;
  readonly limit: number;
  /** How many jobs were looked at up to each that matches, of the first up to the limit. */
  readonly found: readonly number[];
}

/** How far a scan looked, and whether there is more to look at. */
export function endOfScan({ total, lookAt, limit, found }: Scanned): {
  readonly looked: number;
  readonly hasMore: boolean;
} {
  const last = found.length === limit ? found.at(-1) : undefined;
  const looked = last ?? Math.min(total, lookAt);
  return { looked, hasMore: looked < total };
}
