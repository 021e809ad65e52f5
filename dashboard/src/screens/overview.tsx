import type { VNode } from "preact";
import type { JobState, Overview as Seen } from "../api/answers.ts";
import { useQuery } from "../api/use-query.ts";
import { compact, count, span } from "../format.ts";
import { Answer } from "../parts/answer.tsx";
import { Badge } from "../parts/badge.tsx";
import { Text } from "../parts/text.tsx";
import { pathTo } from "../router.ts";
import { Attention } from "./attention.tsx";
import { Charts } from "./charts.tsx";

export function Overview(): VNode {
  const overview = useQuery<Seen>("overview", {}, { everyMs: 3_000 });
  return (
    <>
      <div class="page-head">
        <h1>Overview</h1>
      </div>
      <Answer of={overview}>
        {(seen) => (
          <>
            <Tiles seen={seen} />
            <Attention seen={seen} refresh={overview.refresh} />
            <Charts seen={seen} />
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
  ["active", "Running", ""],
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
        <table class="even">
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
                <td>
                  <a href={pathTo("jobs", { queue: queue.queue })}>
                    <Text value={queue.queue} most={40} />
                  </a>{" "}
                  {queue.paused && <Badge tone="warn">❚❚ paused</Badge>}
                </td>
                <td class="number">{count(queue.due)}</td>
                <td class="number">{count(queue.later)}</td>
                <td class="number">{count(queue.active)}</td>
                <td class="number">{queue.oldestDueMs === null ? "–" : span(queue.oldestDueMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
