import type { VNode } from "preact";
import type { History, HistoryPoint, Overview } from "../api/answers.ts";
import { compact, count, span } from "../format.ts";
import { Spark } from "../parts/spark.tsx";
import { endedIn } from "./rates.ts";

const parts = 30;

interface Props {
  readonly seen: Overview;
  /** Of the last hour, in minutes; null if no figures are kept, or others are shown. */
  readonly history: History | null;
}

/** The first questions: is a node alive, does work get done, does it keep up. */
export function Pulse({ seen, history }: Props): VNode {
  const { nodes, queues } = seen;
  const alive = nodes.filter((node) => node.alive).length;
  const oldest = Math.max(
    -1,
    ...queues.filter(({ paused }) => !paused).map(({ oldestDueMs }) => oldestDueMs ?? -1),
  );
  const now = Date.parse(seen.now);
  const ended = perPart(history, now, endedIn);
  const failed = perPart(history, now, ({ dead, lost }) => dead + lost);
  return (
    <div class="tiles pulse">
      <a class="tile" href="nodes">
        <div class="figure">{count(alive)}</div>
        <div class="soft small">{alive === 1 ? "Node alive" : "Nodes alive"}</div>
      </a>
      <a class="tile" href="queues">
        <div class="figure">{oldest < 0 ? "–" : span(oldest)}</div>
        <div class="soft small">Oldest due</div>
      </a>
      <a class="tile" href={"jobs?since=1h&state=succeeded"}>
        <div class="figure">{ended === null ? "–" : compact(sum(ended))}</div>
        <div class="soft small">Ended in the last hour</div>
        {ended !== null && <Spark counts={ended} tone="good" label={`${count(sum(ended))} jobs ended`} />}
      </a>
      <a class="tile" href="failures">
        <div class="figure">{failed === null ? "–" : compact(sum(failed))}</div>
        <div class="soft small">Dead or lost in the last hour</div>
        {failed !== null && (
          <Spark counts={failed} tone="bad" label={`${count(sum(failed))} jobs dead or lost`} />
        )}
      </a>
    </div>
  );
}

const partMs = 3_600_000 / parts;

function perPart(history: History | null, now: number, of: (point: HistoryPoint) => number): number[] | null {
  if (history === null) return null;
  const counts = Array.from({ length: parts }, () => 0);
  for (const point of history.points) {
    const part = parts - 1 - Math.floor((now - Date.parse(point.at)) / partMs);
    if (part >= 0 && part < parts) counts[part] = (counts[part] ?? 0) + of(point);
  }
  return counts;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, one) => total + one, 0);
}
