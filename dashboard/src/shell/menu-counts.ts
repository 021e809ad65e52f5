import { useEffect, useState } from "preact/hooks";
import type { Overview, Queue } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { compact } from "../format.ts";

const everyMs = 10_000;
/** The screen's own questions come first. */
const afterMs = 500;

/** What the menu says beside a screen, by its path: how much there needs attention. */
export function useMenuCounts(): Readonly<Record<string, string>> {
  const [isTime, setTime] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setTime(true), afterMs);
    return () => clearTimeout(timer);
  }, []);
  const counts = useQuery<Pick<Overview, "counts">>(isTime ? "counts" : null, { by: "state" }, { everyMs });
  const queues = useQuery<{ queues: Queue[] }>(isTime ? "queues" : null, {}, { everyMs });
  const failed = (counts.data?.counts ?? [])
    .filter(({ state }) => state === "dead" || state === "lost")
    .reduce((sum, { count }) => sum + count, 0);
  const paused = (queues.data?.queues ?? []).filter((queue) => queue.paused).length;
  return {
    failures: failed === 0 ? "" : compact(failed),
    queues: paused === 0 ? "" : `${compact(paused)} paused`,
  };
}
