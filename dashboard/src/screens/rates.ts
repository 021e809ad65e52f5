import type { HistoryPoint } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
import { count } from "../format.ts";

const minutes = 5;

/** How many jobs of each queue have ended a minute, of late; null if no figures are kept. */
export function useRates(): ReadonlyMap<string, number> | null {
  const history = useHistory({ step: "minute", since: `${minutes}m`, by: "queue" });
  if (history === null) return null;
  const rates = new Map<string, number>();
  for (const point of history.points) {
    const queue = point.queue ?? "";
    rates.set(queue, (rates.get(queue) ?? 0) + endedIn(point) / minutes);
  }
  return rates;
}

export function endedIn({ succeeded, dead, lost, cancelled }: HistoryPoint): number {
  return succeeded + dead + lost + cancelled;
}

export function perMinute(rate: number): string {
  return rate >= 10 ? count(Math.round(rate)) : String(Math.round(rate * 10) / 10);
}
