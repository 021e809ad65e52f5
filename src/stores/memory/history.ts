import {
  addFigures,
  type History,
  type HistoryFigures,
  type HistoryParams,
  type HistoryPoint,
  type HistoryStep,
  historySteps,
  noFigures,
  type RecordHistoryParams,
  stepAt,
} from "../../history.ts";
import type { PruneParams } from "../../store.ts";
import { compareText } from "./queues.ts";
import type { Space } from "./space.ts";

/** Figures of one queue and name in one step. */
export interface HistoryRow extends HistoryFigures {
  readonly step: HistoryStep;
  readonly at: number;
  readonly queue: string;
  readonly name: string;
}

export function recordHistory(
  space: Space,
  { node, sequence, entries }: RecordHistoryParams,
  now: number,
): void {
  if (sequence <= (space.historyWriters.get(node)?.sequence ?? 0)) return;
  space.historyWriters.set(node, { sequence, at: now });
  for (const { agoMs, queue, name, ...figures } of entries) {
    for (const step of historySteps) {
      const at = stepAt(step, now - agoMs);
      const key = JSON.stringify([step, at, queue, name]);
      const known = space.history.get(key) ?? noFigures;
      space.history.set(key, { step, at, queue, name, ...addFigures(known, figures) });
    }
  }
}

export function history(
  space: Space,
  { step, since, until, queue, name, by, limit }: HistoryParams,
): History {
  const groups = new Map<string, HistoryPoint>();
  for (const row of space.history.values()) {
    const isAsked =
      row.step === step && (queue ?? row.queue) === row.queue && (name ?? row.name) === row.name;
    if (!isAsked || row.at < since.getTime() || row.at >= until.getTime()) continue;
    const group = by === null ? {} : { [by]: row[by] };
    const key = JSON.stringify([row.at, group]);
    const figures = addFigures(groups.get(key) ?? noFigures, row);
    groups.set(key, { at: new Date(row.at), ...group, ...figures });
  }
  const points = [...groups.values()].toSorted(
    (a, b) => a.at.getTime() - b.at.getTime() || compareText(groupOf(a), groupOf(b)),
  );
  return { points: points.slice(0, limit), more: points.length > limit };
}

const groupOf = ({ queue, name }: HistoryPoint): string => queue ?? name ?? "";

/** Whether there are more. */
export function pruneHistory(space: Space, { historyMs, nodesMs, limit }: PruneParams, now: number): boolean {
  for (const [node, { at }] of [...space.historyWriters]) {
    if (at + nodesMs <= now) space.historyWriters.delete(node);
  }
  if (historyMs === undefined) return false;
  let more = false;
  for (const step of historySteps) {
    const old = [...space.history]
      .filter(([, row]) => row.step === step && row.at <= now - historyMs[step])
      .toSorted(([, a], [, b]) => a.at - b.at);
    for (const [key] of old.slice(0, limit)) space.history.delete(key);
    more ||= old.length > limit;
  }
  return more;
}
