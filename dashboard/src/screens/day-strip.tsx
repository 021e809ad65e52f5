import type { VNode } from "preact";
import type { Occurrence } from "../api/answers.ts";
import { type Asking, useQuery } from "../api/use-query.ts";
import { timeOfDay } from "../format.ts";
import { pathTo } from "../router.ts";
import { fateOf, tallyOf, tallyText } from "./fate.ts";
import { momentsOf } from "./ledger-grid.ts";
import { localTime } from "./ledger-time.ts";

const hourMs = 3_600_000;
const hours = 24;
const limit = 1_000;

/** The hours of the last day, for every schedule the same: the last one is the hour that it is now. */
export function stripHours(now: number): number[] {
  const current = Math.floor(now / hourMs);
  return Array.from({ length: hours }, (_, place) => (current - hours + 1 + place) * hourMs);
}

type Day = Asking<{ readonly occurrences: readonly Occurrence[] }>;

/** What was due in those hours. */
export function useDayOf(path: string, now: number): Day {
  const from = new Date(stripHours(now)[0] ?? now).toISOString();
  return useQuery(`${path}/occurrences`, { from, limit }, { everyMs: 10_000 });
}

interface Props {
  readonly path: string;
  readonly zone: string;
  readonly now: number;
  readonly answer: Day;
}

/** The last 24 hours of a schedule on one line, with the worst of each hour. */
export function DayStrip({ path, zone, now, answer }: Props): VNode {
  if (answer.data === null) return <span class="soft small">{answer.error?.message ?? "…"}</span>;
  const { occurrences } = answer.data;
  const byHour = Map.groupBy(momentsOf(occurrences), ({ at }) => Math.floor(at / hourMs) * hourMs);
  // For a full page, it is unknown what came before it.
  const knownFrom = occurrences.length < limit ? 0 : Date.parse(occurrences[0]?.fireAt ?? "");
  return (
    <div class="axis day-strip" role="group" aria-label="The last 24 hours">
      {stripHours(now).map((start) => {
        const moments = byHour.get(start) ?? [];
        const tally = tallyOf(moments);
        const [worst] = tally;
        const { day } = localTime(start, zone);
        const isKnown = start + hourMs > knownFrom;
        if (worst === undefined) return <span key={start} class={isKnown ? "nothing" : "nothing unknown"} />;
        const { tone, sign } = fateOf(worst[0]);
        const title = `${timeOfDay(start)}: ${start >= knownFrom ? "" : "at least "}${tallyText(tally)}`;
        return (
          <a
            key={start}
            class={tone}
            href={pathTo(path, { span: "day", day })}
            title={title}
            aria-label={title}
          >
            {sign}
          </a>
        );
      })}
    </div>
  );
}
