import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Occurrence } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { count, dayInZone } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { pathTo, usePlace } from "../router.ts";
import { fateNameOf, fateNames, fateOf } from "./fate.ts";
import { Account, Cell } from "./ledger-cell.tsx";
import { schedulePath } from "./schedules.tsx";

const spans = [
  ["1d", "Day"],
  ["7d", "Week"],
  ["90d", "Quarter"],
] as const;
const most = 1_000;

/** An account of every occurrence: one cell each, a line for each day, coloured and signed by what became of it. */
export function Ledger({
  scheduleKey,
  zone,
}: {
  readonly scheduleKey: string;
  readonly zone: string;
}): VNode {
  const since = usePlace().query.get("since") ?? "7d";
  const path = `${schedulePath(scheduleKey)}/occurrences`;
  const answer = useQuery<{ occurrences: Occurrence[] }>(
    path,
    { from: since, limit: most },
    { everyMs: 10_000 },
  );
  return (
    <section class="panel stack" aria-labelledby="ledger">
      <div class="row spread">
        <h2 id="ledger">The ledger</h2>
        <nav class="segments" aria-label="How far back">
          {spans.map(([value, name]) => (
            <a
              key={value}
              href={pathTo(schedulePath(scheduleKey), { since: value })}
              aria-current={value === since ? "true" : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      </div>
      <Answer of={answer}>{({ occurrences }) => <Days cells={occurrences} zone={zone} />}</Answer>
    </section>
  );
}

function Days({ cells, zone }: { readonly cells: readonly Occurrence[]; readonly zone: string }): VNode {
  const [chosen, setChosen] = useState<string | null>(null);
  if (cells.length === 0) return <p class="soft">Nothing was due in that time.</p>;
  const days = Map.groupBy(cells, ({ fireAt }) => dayInZone(fireAt, zone));
  return (
    <>
      <Legend cells={cells} />
      <div class="days">
        {[...days].reverse().map(([day, ofDay]) => (
          <div key={day} class="day">
            <span class="small soft number">{day}</span>
            <div>
              <div class="strip" role="group" aria-label={`Occurrences of ${day}`}>
                {ofDay.map((cell) => (
                  <Cell
                    key={cell.fireAt}
                    cell={cell}
                    zone={zone}
                    isChosen={cell.fireAt === chosen}
                    choose={() => setChosen(cell.fireAt === chosen ? null : cell.fireAt)}
                  />
                ))}
              </div>
              <Account zone={zone} cell={ofDay.find(({ fireAt }) => fireAt === chosen)} />
            </div>
          </div>
        ))}
      </div>
      {cells.length === most && (
        <p class="small soft">These are the latest {count(most)}; earlier ones are not shown.</p>
      )}
    </>
  );
}

/** What the signs mean, and how many there are of each. */
function Legend({ cells }: { readonly cells: readonly Occurrence[] }): VNode {
  const counts = new Map<string, number>();
  for (const cell of cells) {
    const name = fateNameOf(cell);
    counts.set(name, (counts.get(name) ?? 0) + cell.count);
  }
  return (
    <ul class="legend small">
      {fateNames
        .filter((name) => counts.has(name))
        .map((name) => {
          const { tone, sign, word } = fateOf(name);
          return (
            <li key={name}>
              <span class={`swatch ${tone}`} aria-hidden="true">
                {sign}
              </span>
              {word} <span class="soft number">{count(counts.get(name) ?? 0)}</span>
            </li>
          );
        })}
    </ul>
  );
}
