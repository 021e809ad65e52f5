import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { keep, recall } from "../kept.ts";
import { type Query, request } from "./request.ts";

export interface Asking<T> {
  /** The last answer. It stays when a later one fails. */
  readonly data: T | null;
  readonly error: Error | null;
  /** Whether `data` answers the present question; the answer to the one before is shown until then. */
  readonly isCurrent: boolean;
  /** When the last answer came. */
  readonly answeredAt: number;
  /** Whether the answer to the latest question is overdue. */
  readonly isSlow: boolean;
  refresh(): void;
}

interface Options {
  /** Asks again so long after each answer, while the tab is seen; 0: never. */
  readonly everyMs?: number;
  readonly isPaused?: boolean;
}

interface Answer<T> {
  readonly key: string | null;
  readonly data: T | null;
  readonly error: Error | null;
  readonly at: number;
}

const slowMs = 2_000;

/**
 * The answer to a GET. Asks again while the tab is seen; what was there stays until the new answer is, also when one comes back to the screen.
 * An answer that comes after another question was asked is thrown away.
 */
export function useQuery<T>(
  path: string | null,
  query: Query = {},
  { everyMs = 0, isPaused = false }: Options = {},
): Asking<T> {
  const key = path === null ? null : `${path}?${JSON.stringify(query)}`;
  const [answer, setAnswer] = useState<Answer<T>>(
    () => recall<Answer<T>>(`answer ${key}`) ?? { key: null, data: null, error: null, at: 0 },
  );
  const [isSlow, setSlow] = useState(false);
  const [turn, setTurn] = useState(0);
  const refresh = useCallback(() => setTurn((value) => value + 1), []);
  const asked = useRef({ path, query });
  asked.current = { path, query };
  const answered = useRef("");

  useEffect(() => {
    const { path: current, query: words } = asked.current;
    if (current === null || key === null) return undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDue = false;
    const ask = async (): Promise<void> => {
      isDue = false;
      const slow = setTimeout(() => setSlow(true), slowMs);
      stop.signal.addEventListener("abort", () => clearTimeout(slow));
      const fresh = await request<T>(current, { query: words, signal: stop.signal }).then(
        (data) => ({ data, error: null }),
        (error: Error) => ({ data: null, error }),
      );
      clearTimeout(slow);
      if (stop.signal.aborted) return;
      setSlow(false);
      answered.current = `${key} ${turn}`;
      if (fresh.error === null) {
        const next = { key, data: fresh.data, error: null, at: Date.now() };
        keep(`answer ${key}`, next);
        setAnswer(next);
      } else
        setAnswer((before) => ({
          ...(before.key === key ? before : { data: null, at: 0 }),
          key,
          error: fresh.error,
        }));
      if (everyMs > 0 && !isPaused) timer = setTimeout(again, everyMs);
    };
    const again = (): void => {
      isDue = true;
      if (!document.hidden) void ask();
    };
    const seen = (): void => {
      if (isDue && !document.hidden) void ask();
    };
    // A pause that begins asks nothing.
    if (!isPaused || answered.current !== `${key} ${turn}`) void ask();
    document.addEventListener("visibilitychange", seen);
    return () => {
      stop.abort();
      clearTimeout(timer);
      setSlow(false);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, turn, everyMs, isPaused]);

  const isCurrent = answer.key === key;
  return {
    data: answer.data,
    error: isCurrent ? answer.error : null,
    isCurrent,
    answeredAt: answer.at,
    isSlow,
    refresh,
  };
}
