import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { inZone, sentence } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Text } from "../parts/text.tsx";
import { go, pathTo, usePlace } from "../router.ts";
import { tallyOf } from "./fate.ts";
import { useToday } from "./ledger-clock.ts";
import { byDay, dayLines, daysOf, hourLines, isDense, momentsOf, mondayOf } from "./ledger-grid.ts";
import { LedgerLegend } from "./ledger-legend.tsx";
import { Lines } from "./ledger-lines.tsx";
import { type LedgerSpan, useOccurrences } from "./ledger-query.ts";
import { addDays, isDay, localTime, startOfDay } from "./ledger-time.ts";
import { Weeks } from "./ledger-weeks.tsx";
import { schedulePath } from "./schedule-rule.ts";

const names = { day: "Day", week: "Week", quarter: "Quarter" } as const;
type SpanName = keyof typeof names;
const weeksOfQuarter = 13;
/** Enough for every three seconds of a day. */
const mostPages = 32;

/** The days that are shown, by the last of them. */
interface Shown {
  readonly span: SpanName;
  readonly first: string;
  readonly last: string;
}

function shownDays(span: SpanName, last: string): Shown {
  if (span === "day") return { span, first: last, last };
  if (span === "week") return { span, first: addDays(last, -6), last };
  return {
    span,
    first: addDays(mondayOf(last), -7 * (weeksOfQuarter - 1)),
    last: addDays(mondayOf(last), 6),
  };
}

function readSpan(text: string | null): SpanName {
  return text === "day" || text === "quarter" ? text : "week";
}

/** An account of every occurrence, on an axis of time: did it run on the 3rd, and if not, why? */
export function Ledger({
  scheduleKey,
  zone,
  madeAt,
}: {
  readonly scheduleKey: string;
  readonly zone: string;
  /** When the store first had the schedule. */
  readonly madeAt: string;
}): VNode {
  const { query } = usePlace();
  const today = useToday(zone);
  const span = readSpan(query.get("span"));
  const asked = query.get("day");
  const day = isDay(asked) && asked < today ? asked : today;
  const shown = shownDays(span, day);
  const path = schedulePath(scheduleKey);
  const found = useOccurrences({
    path: `${path}/occurrences`,
    from: startOfDay(shown.first, zone),
    to: startOfDay(addDays(shown.last, 1), zone),
    mostPages,
  });
  return (
    <section class="panel stack" aria-labelledby="ledger">
      <div class="row spread">
        <h2 id="ledger">The ledger</h2>
        <div class="row">
          <nav class="segments" aria-label="How much">
            {(Object.keys(names) as SpanName[]).map((name) => (
              <a
                key={name}
                href={pathTo(path, { span: name, day: day === today ? null : day })}
                aria-current={name === span ? "true" : undefined}
              >
                {names[name]}
              </a>
            ))}
          </nav>
          <Calendar path={path} shown={shown} day={day} today={today} />
        </div>
      </div>
      <Answer of={found.latest}>
        {() => <Found of={found} shown={shown} today={today} zone={zone} path={path} madeAt={madeAt} />}
      </Answer>
    </section>
  );
}

/** The span before, the span after, and any day by its date. */
function Calendar({
  path,
  shown: { span, first, last },
  day,
  today,
}: {
  readonly path: string;
  readonly shown: Shown;
  readonly day: string;
  readonly today: string;
}): VNode {
  const to = (target: string): string => pathTo(path, { span, day: target >= today ? null : target });
  const days = daysOf(first, last).length;
  return (
    <div class="row tight-row" role="group" aria-label="When">
      <a class="button" href={to(addDays(day, -days))} aria-label={`The ${span} before`}>
        ‹
      </a>
      <input
        type="date"
        aria-label="Go to a date"
        value={day}
        max={today}
        onChange={({ currentTarget: { value } }) => {
          if (isDay(value)) go(to(value), { replace: true });
        }}
      />
      {last < today ? (
        <a class="button" href={to(addDays(day, days))} aria-label={`The ${span} after`}>
          ›
        </a>
      ) : (
        <span class="button off" aria-hidden="true">
          ›
        </span>
      )}
    </div>
  );
}

interface FoundProps {
  readonly of: LedgerSpan;
  readonly shown: Shown;
  readonly today: string;
  readonly zone: string;
  readonly path: string;
  readonly madeAt: string;
}

function Found({ of, shown, today, zone, path, madeAt }: FoundProps): VNode {
  const days = useMemo(() => byDay(momentsOf(of.occurrences), zone), [of.occurrences, zone]);
  const list = daysOf(shown.first, shown.last);
  const moments = list.flatMap((day) => days.get(day) ?? []);
  // One that was removed and made again has a ledger older than itself.
  const madeOn = [localTime(Date.parse(madeAt), zone).day, ...days.keys()].reduce((a, b) => (a < b ? a : b));
  return (
    <>
      {moments.length === 0 ? (
        <p class="soft">{of.isReading ? "Reading…" : `Nothing was due ${whenOf(shown)}.`}</p>
      ) : (
        <LedgerLegend tally={tallyOf(moments)} />
      )}
      {shown.span === "quarter" ? (
        <Weeks
          mondays={list.filter((day) => mondayOf(day) === day).reverse()}
          days={days}
          today={today}
          madeOn={madeOn}
          dayPath={path}
        />
      ) : (
        <Lines
          lines={
            shown.span === "day" && isDense(moments)
              ? hourLines(moments, shown.first, zone)
              : dayLines(moments, list, zone)
          }
          zone={zone}
          dayPath={shown.span === "day" ? null : path}
        />
      )}
      <Missing of={of} from={startOfDay(shown.first, zone)} zone={zone} />
    </>
  );
}

function whenOf({ span }: Shown): string {
  return span === "day" ? "on that day" : `in that ${span}`;
}

/** What of the span is not there, and why. */
function Missing({
  of: { from, isReading, error },
  from: asked,
  zone,
}: {
  readonly of: LedgerSpan;
  readonly from: number;
  readonly zone: string;
}): VNode | null {
  if (isReading)
    return (
      <p class="small soft" aria-busy="true">
        Reading further back…
      </p>
    );
  if (from <= asked) return null;
  const since = `${inZone(new Date(from).toISOString(), zone)} ${zone}`;
  return (
    <p class="notice warn small" role="status">
      <span>
        {error === null ? (
          "There are too many to read them all."
        ) : (
          <Text value={sentence(error.message)} most={300} />
        )}{" "}
        Before {since} nothing is shown. Choose an earlier day to see it.
      </span>
    </p>
  );
}
