import {
  fromNumbers,
  type History,
  type HistoryParams,
  type HistoryPoint,
  leveled,
  type RecordHistoryParams,
  seriesFor,
  summedColumns,
  toNumbers,
} from "../../history.ts";
import type { PruneParams } from "../../store/reaping.ts";
import { instantOf } from "../../unreadable.ts";
import { compareText } from "./queues.ts";
import type { Session } from "./session.ts";

/** The history belongs to no slot, like the audit log; it is kept in the first. */
export async function recordHistory(
  session: Session,
  { node, sequence, entries }: RecordHistoryParams,
): Promise<void> {
  const json = leveled(entries).map((row) => [row.level, row.agoMs, row.queue, row.name, ...toNumbers(row)]);
  await session.run("record-history", 0, node, sequence, JSON.stringify(json), summedColumns.length);
}

/** About how many rows one script reads: it blocks all other calls on the server. */
const piece = 1_000;

export async function history(session: Session, params: HistoryParams): Promise<History> {
  const { until, queue = "", name = "", by, limit } = params;
  const points: HistoryPoint[] = [];
  let since = String(params.since.getTime());
  while (since !== "" && points.length <= limit) {
    const asked = [
      seriesFor(params),
      since,
      until.getTime(),
      by ?? "",
      queue,
      name,
      summedColumns.length,
      piece,
    ];
    const [next, ...rows] = await session.list("history", 0, ...asked);
    since = String(next ?? "");
    for (let place = 0; place + 2 < rows.length; place += 3)
      points.push(pointOf(by, rows[place], rows[place + 1], rows[place + 2]));
  }
  points.sort((a, b) => a.at.getTime() - b.at.getTime() || compareText(groupOf(a), groupOf(b)));
  return { points: points.slice(0, limit), more: points.length > limit };
}

function pointOf(
  by: HistoryParams["by"],
  at: Buffer | undefined,
  group: Buffer | undefined,
  figures: Buffer = Buffer.alloc(0),
): HistoryPoint {
  const numbers = Array.from({ length: figures.length / 8 }, (_, index) => figures.readDoubleBE(index * 8));
  return {
    at: instantOf(Number(at)),
    ...(by === null ? {} : { [by]: String(group) }),
    ...fromNumbers(numbers),
  };
}

const groupOf = ({ queue, name }: HistoryPoint): string => queue ?? name ?? "";

/** Whether there are more. */
export async function pruneHistory(
  session: Session,
  { historyMs, nodesMs, limit }: PruneParams,
): Promise<boolean> {
  const kept = [historyMs?.minute, historyMs?.hour].map((ms) => (ms === undefined ? "" : Math.trunc(ms)));
  return (await session.numbers("prune-history", 0, Math.trunc(nodesMs), limit, ...kept))[0] === 1;
}
