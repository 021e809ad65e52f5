import type { VNode } from "preact";
import type { JobState, Overview as Seen } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { compact, count, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { pathTo } from "../router.ts";
import { Attention } from "./attention.tsx";
import { Charts, useFigures, useOver } from "./charts.tsx";
import { Pulse } from "./pulse.tsx";

export function Overview(): VNode {
  const overview = useQuery<Seen>("overview", {}, { everyMs: 3_000 });
  // Asked for at once: behind the overview they would come a trip later.
  const over = useOver();
  const history = useFigures(over);
  return (
    <>
      <div class="page-head">
        <h1>Overview</h1>
      </div>
      <Answer of={overview}>
        {(seen) => (
          <>
            <Pulse seen={seen} history={over === "hour" ? history : null} />
            <Tiles seen={seen} />
            <Attention seen={seen} refresh={overview.refresh} />
            <Charts seen={seen} over={over} history={history} />
            <QueuesAtAGlance seen={seen} />
          </>
        )}
      </Answer>
    </>
  );
}

function total({ counts }: Pick<Seen, "counts">, state: JobState): number {
  return counts.filter((row) => row.state === state).reduce((sum, row) => sum + row.count, 0);
}

const tiles = [
  ["waiting", "Waiting", ""],
  ["active", "Active", ""],
  ["blocked", "Blocked", ""],
  ["succeeded", "Succeeded", ""],
  ["dead", "Dead", "bad"],
  ["lost", "Lost", "lost"],
] as const;

function Tiles({ seen }: { readonly seen: Seen }): VNode {
  return (
    <div class="tiles">
      {tiles.map(([state, title, tone]) => {
        const many = total(seen, state);
        return (
          <a key={state} class="tile" href={pathTo("jobs", { state })} title={count(many)}>
            <div class={`figure ${many > 0 ? tone : ""}`}>{compact(many)}</div>
            <div class="soft small">{title}</div>
          </a>
        );
      })}
    </div>
  );
}

function QueuesAtAGlance({ seen: { queues } }: { readonly seen: Seen }): VNode | null {
  if (queues.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="glance">
      <h2 id="glance">Queues</h2>
      <div class="table-wrap">
        <table class="cards even">
          <thead>
            <tr>
              <th scope="col">Queue</th>
              <th scope="col" class="number">
                Due
              </th>
              <th scope="col" class="number">
                Later
              </th>
              <th scope="col" class="number">
                Active
              </th>
              <th scope="col" class="number">
                Oldest due
              </th>
            </tr>
          </thead>
          <tbody>
            {queues.map((queue) => (
              <tr key={queue.queue} data-row>
                <td class="head">
                  <a href={pathTo("jobs", { queue: queue.queue })}>
                    <Text value={queue.queue} most={40} />
                  </a>{" "}
                  {queue.paused && <Badge tone="warn">❚❚ paused</Badge>}
                </td>
                <td class="number" data-label="Due">
                  {count(queue.due)}
                </td>
                <td class="number" data-label="Later">
                  {count(queue.later)}
                </td>
                <td class="number" data-label="Active">
                  {count(queue.active)}
                </td>
                <td class="number" data-label="Oldest due">
                  {queue.oldestDueMs === null ? "–" : span(queue.oldestDueMs)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
