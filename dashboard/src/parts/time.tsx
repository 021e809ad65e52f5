import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ago, exact } from "../format.ts";

const listeners = new Set<(now: number) => void>();
setInterval(() => {
  if (!document.hidden) for (const listener of listeners) listener(Date.now());
}, 1_000);

/** One clock for the page, so that all times move together. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    listeners.add(setNow);
    return () => void listeners.delete(setNow);
  }, []);
  return now;
}

/** How long ago, with the exact time on hover. */
export function Time({ at, none = "" }: { readonly at: string | null; readonly none?: string }): VNode {
  const now = useNow();
  if (at === null) return <span class="soft">{none}</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, now)}
    </time>
  );
}
