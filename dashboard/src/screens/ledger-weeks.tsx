import type { VNode } from "preact";
import { count } from "../format.ts";
import { pathTo } from "../router.ts";
import { fateOf, tallyOf, tallyText } from "./fate.ts";
import { daysOf, type Moment } from "./ledger-grid.ts";
import { addDays, dayName } from "./ledger-time.ts";

interface Props {
  /** Mondays, the newest first. */
  readonly mondays: readonly string[];
  readonly days: ReadonlyMap<string, readonly Moment[]>;
  /** Later days have not come yet. */
  readonly today: string;
  readonly dayPath: string;
}

/** A calendar: one cell for each day, with the worst that happened on it. A click opens the day. */
export function Weeks({ mondays, days, today, dayPath }: Props): VNode {
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
                <Day key={day} day={day} moments={days.get(day) ?? []} dayPath={dayPath} />
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
  dayPath,
}: {
  readonly day: string;
  readonly moments: readonly Moment[];
  readonly dayPath: string;
}): VNode {
  const date = Number(day.slice(8));
  const tally = tallyOf(moments);
  const [worst] = tally;
  if (worst === undefined) return <span class="day-cell none small">{date}</span>;
  const [name, many] = worst;
  const { tone, sign } = fateOf(name);
  const title = `${dayName(day)}: ${tallyText(tally)}`;
  return (
    <a class={`day-cell small ${tone}`} href={pathTo(dayPath, { span: "day", day })} title={title}>
      <span class="hidden-label">{title}</span>
      <span aria-hidden="true">{date}</span>
      <span class="worst" aria-hidden="true">
        {sign.trim() === "" ? "✓" : sign} {count(many)}
      </span>
    </a>
  );
}
