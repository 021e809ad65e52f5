import type { VNode } from "preact";
import { count } from "../format.ts";
import { pathTo } from "../router.ts";
import { fateOf, ranBeside, tallyOf, tallyText } from "./fate.ts";
import { daysOf, type Moment } from "./ledger-grid.ts";
import { addDays, dayName } from "./ledger-time.ts";

interface Props {
  /** Mondays, the newest first. */
  readonly mondays: readonly string[];
  readonly days: ReadonlyMap<string, readonly Moment[]>;
  /** Later days have not come yet. */
  readonly today: string;
  /** On earlier days there was no such schedule, as far as is known. */
  readonly madeOn: string;
  readonly dayPath: string;
}

/** A calendar: one cell for each day, with the worst that happened on it. A click opens the day. */
export function Weeks({ mondays, days, today, madeOn, dayPath }: Props): VNode {
  return (
    <div class="weeks">
      <div class="line" aria-hidden="true">
        <span />
        <div class="week small soft">
          {daysOf("2024-01-01", "2024-01-07").map((day) => (
            <span key={day}>{dayName(day, { weekday: "short" })}</span>
          ))}
        </div>
      </div>
      {mondays.map((monday) => (
        <div key={monday} class="line">
          <span class="line-name small soft number">
            {dayName(monday, { day: "numeric", month: "short" })}
          </span>
          <div class="week" role="group" aria-label={`Week of ${dayName(monday)}`}>
            {daysOf(monday, addDays(monday, 6))
              .filter((day) => day <= today)
              .map((day) => (
                <Day
                  key={day}
                  day={day}
                  moments={days.get(day) ?? []}
                  isBefore={day < madeOn}
                  dayPath={dayPath}
                />
              ))}
          </div>
        </div>
      ))}
    </div>
  );
}

function Day({
  day,
  moments,
  isBefore,
  dayPath,
}: {
  readonly day: string;
  readonly moments: readonly Moment[];
  readonly isBefore: boolean;
  readonly dayPath: string;
}): VNode {
  const date = Number(day.slice(8));
  const tally = tallyOf(moments);
  const [worst] = tally;
  if (worst === undefined)
    return (
      <span
        class={`day-cell small ${isBefore ? "before" : "none"}`}
        title={`${dayName(day)}: ${isBefore ? "before the schedule was made" : "nothing was due"}`}
      >
        {date}
      </span>
    );
  const [name, many] = worst;
  const { tone, sign } = fateOf(name);
  const ran = ranBeside(tally);
  const title = `${dayName(day)}: ${tallyText(tally)}`;
  return (
    <a class={`day-cell small ${tone}`} href={pathTo(dayPath, { span: "day", day })} title={title}>
      <span class="hidden-label">{title}</span>
      <span aria-hidden="true">{date}</span>
      <span class="worst" aria-hidden="true">
        {sign.trim() === "" ? "✓" : sign} {count(many)}
        {ran > 0 && <span class="ran">✓ {count(ran)}</span>}
      </span>
    </a>
  );
}
