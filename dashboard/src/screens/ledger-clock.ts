import { useEffect, useState } from "preact/hooks";
import { localTime } from "./ledger-time.ts";

const lookEveryMs = 1_000;

/** Something that follows from the time and seldom changes: only then is what shows it redrawn. */
function useOfNow<T extends string | number>(of: (now: number) => T, key: string): T {
  const [, setValue] = useState(of(Date.now()));
  useEffect(() => {
    const timer = setInterval(() => setValue(of(Date.now())), lookEveryMs);
    return () => clearInterval(timer);
  }, [key]);
  return of(Date.now());
}

export function useToday(zone: string): string {
  return useOfNow((now) => localTime(now, zone).day, zone);
}

const hourMs = 3_600_000;

/** When the present hour began. */
export function useHour(): number {
  return useOfNow((now) => Math.floor(now / hourMs) * hourMs, "hour");
}
