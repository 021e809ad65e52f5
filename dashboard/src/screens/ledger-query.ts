import { useEffect, useMemo, useState } from "preact/hooks";
import type { Occurrence } from "../api/answers.ts";
import { request } from "../api/request.ts";
import { type Asking, useQuery } from "../api/use-query.ts";

interface Page {
  readonly occurrences: readonly Occurrence[];
}

interface Earlier {
  readonly occurrences: readonly Occurrence[];
  /** Everything from here on was read. */
  readonly from: number;
  readonly isReading: boolean;
  readonly error: Error | null;
}

export interface LedgerSpan {
  /** The latest of the span; it is asked for again and again. */
  readonly latest: Asking<Page>;
  readonly occurrences: readonly Occurrence[];
  readonly from: number;
  readonly isReading: boolean;
  readonly error: Error | null;
}

interface Span {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  /** How many pages are read at most. */
  readonly mostPages: number;
}

const dayMs = 86_400_000;
const pageSize = 1_000;
const longestRangeMs = 31 * dayMs;
const nothing: Earlier = { occurrences: [], from: Number.POSITIVE_INFINITY, isReading: true, error: null };

/** All occurrences of a span, read from its end. The last day of it stays up to date; what is older is read once. */
export function useOccurrences({ path, from, to, mostPages }: Span): LedgerSpan {
  const latestFrom = Math.max(from, to - dayMs);
  const latest = useQuery<Page>(
    path,
    { from: iso(latestFrom), to: iso(to), limit: pageSize },
    { everyMs: 10_000 },
  );
  const [earlier, setEarlier] = useState(nothing);
  const isThere = latest.isCurrent && latest.data !== null;
  useEffect(() => {
    setEarlier(nothing);
    if (!isThere || latest.data === null) return undefined;
    const stop = new AbortController();
    const end = startOf(latest.data, latestFrom);
    void readBack({ path, from, to: end, mostPages }, setEarlier, stop.signal);
    return () => stop.abort();
  }, [path, from, to, mostPages, isThere]);

  const occurrences = useMemo(() => {
    const all = [...earlier.occurrences, ...(latest.data?.occurrences ?? [])];
    return [...new Map(all.map((one) => [one.fireAt, one])).values()];
  }, [earlier.occurrences, latest.data]);
  const { isReading, error } = earlier;
  return { latest, occurrences, from: earlier.from, isReading, error };
}

async function readBack(
  { path, from, to, mostPages }: Span,
  show: (earlier: Earlier) => void,
  signal: AbortSignal,
): Promise<void> {
  const ask = async (start: number, end: number, limit: number): Promise<Page> =>
    request<Page>(path, { query: { from: iso(start), to: iso(end), limit }, signal });
  let found: readonly Occurrence[] = [];
  let end = to;
  let width = dayMs;
  try {
    for (let page = 0; end > from && page < mostPages; page += 1) {
      const answer = await ask(Math.max(from, end - width), end, pageSize);
      const start = startOf(answer, Math.max(from, end - width));
      found = [...answer.occurrences, ...found];
      // As long a span as fills a page: the server reads a span from its start to find its latest.
      width = Math.max(1_000, answer.occurrences.length * 5 < pageSize ? width * 4 : end - start);
      end = start;
      // To draw thousands of cells after every page would take longer than to read them.
      if (isPowerOfTwo(page + 1)) show({ occurrences: found, from: end, isReading: true, error: null });
    }
    if (end <= from) {
      // A pause is one row at its beginning, and that may be before the span.
      const { occurrences } = await ask(from - longestRangeMs, from, 1);
      found = [...occurrences.filter(({ until }) => until !== null), ...found];
    }
    if (!signal.aborted) show({ occurrences: found, from: end, isReading: false, error: null });
  } catch (error) {
    if (signal.aborted) return;
    show({ occurrences: found, from: end, isReading: false, error: error as Error });
  }
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0;
}

/** From where on a page has everything: a full one may have left out what is older. */
function startOf({ occurrences }: Page, asked: number): number {
  const [first] = occurrences;
  return first === undefined || occurrences.length < pageSize ? asked : Date.parse(first.fireAt);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
