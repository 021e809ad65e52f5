import {
  addFigures,
  type History,
  type HistoryFigures,
  type HistoryParams,
  type HistoryPoint,
  historyLevels,
  historySteps,
  leveled,
  noFigures,
  type RecordHistoryParams,
  seriesFor,
  seriesOf,
  stepAt,
} from "../../history.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { compareText } from "./queues.ts";
import type { Session } from "./session.ts";

/** Figures of one queue and name, of one queue, or of all, in one step. */
export interface HistoryRow extends HistoryFigures {
  readonly series: string;
  readonly at: number;
  readonly queue: string;
  readonly name: string;
}

export function recordHistory(
  { data, now }: Session,
  { node, sequence, entries }: RecordHistoryParams,
): void {
  if (sequence <= (data.historyWriters.get(node)?.sequence ?? 0)) return;
  data.historyWriters.set(node, { sequence, at: now });
  for (const { level, agoMs, queue, name, ...figures } of leveled(entries)) {
    for (const step of historySteps) {
      const series = seriesOf(level, step);
      const at = stepAt(step, now - agoMs);
      const key = JSON.stringify([series, at, queue, name]);
      const known = data.history.get(key) ?? noFigures;
      data.history.set(key, { series, at, queue, name, ...addFigures(known, figures) });
    }
  }
}

export function history({ data }: Session, params: HistoryParams): History {
  const { since, until, queue, name, by, limit } = params;
  const series = seriesFor(params);
  const groups = new Map<string, HistoryPoint>();
  for (const row of data.history.values()) {
    const isAsked =
      row.series === series && (queue ?? row.queue) === row.queue && (name ?? row.name) === row.name;
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
export function pruneHistory({ data, now }: Session, { historyMs, nodesMs, limit }: PruneParams): boolean {
  for (const [node, { at }] of [...data.historyWriters]) {
    if (at + nodesMs <= now) data.historyWriters.delete(node);
  }
  if (historyMs === undefined) return false;
  let more = false;
  const all = historySteps.flatMap((step) => historyLevels.map((level) => ({ step, level })));
  for (const { step, level } of all) {
    const series = seriesOf(level, step);
    const old = [...data.history]
      .filter(([, row]) => row.series === series && row.at <= now - historyMs[step])
      .toSorted(([, a], [, b]) => a.at - b.at);
    for (const [key] of old.slice(0, limit)) data.history.delete(key);
    more ||= old.length > limit;
  }
  return more;
}
