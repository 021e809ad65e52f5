import type { ScanFilter, ScanParams } from "../../../store/questions.ts";
import { endStatesOf } from "../../scan-place.ts";
import { isWithin } from "../questions.ts";
import type { Row } from "../rows.ts";
import { byEnd, type End, type Indexes } from "./indexes.ts";

/** Jobs that have ended in one of the filter's states and within its span, in the order of their ends, behind `from`. */
export function* endsOf(
  { ended, forgetting }: Indexes,
  filter: ScanFilter,
  order: ScanParams["order"],
  from: End | null,
): Generator<Row> {
  const states = endStatesOf(filter);
  const sign = order === "oldest" ? 1 : -1;
  const own = [...forgetting.upward(null)]
    .filter((row) => states.includes(row.state) && (from === null || sign * byEnd(row, from) > 0))
    .sort((a, b) => sign * byEnd(a, b));
  const sources = [own.values()];
  for (const state of states) {
    const rows = ended[state as keyof typeof ended];
    sources.push(order === "oldest" ? rows.upward(from) : rows.downward(from));
  }
  for (const row of merged(sources, (a, b) => sign * byEnd(a, b)))
    if (isWithin(row.finishedAt ?? 0, filter.endedAfter, filter.endedBefore)) yield row;
}

/** Several lists that are in order, as one. */
function* merged(sources: readonly Iterator<Row>[], compare: (a: Row, b: Row) => number): Generator<Row> {
  const heads = sources.map((source) => ({ source, row: source.next().value as Row | undefined }));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) {
      if (head.row === undefined) continue;
      if (first?.row === undefined || compare(head.row, first.row) < 0) first = head;
    }
    if (first?.row === undefined) return;
    yield first.row;
    first.row = first.source.next().value as Row | undefined;
  }
}
