import type { VNode } from "preact";
import type { History, HistoryPoint, Overview } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
import { count, span, timeOfDay } from "../format.ts";
import { Chart, type Line } from "../parts/chart.tsx";
import { go, pathTo, usePlace } from "../router.ts";
import { endedIn } from "./rates.ts";

const spans = {
  hour: { name: "Hour", word: "hour", since: "1h", stepMs: 60_000, steps: 60, step: "minute" },
  day: { name: "Day", word: "day", since: "24h", stepMs: 60_000, steps: 1_440, step: "minute" },
  month: { name: "30 days", word: "30 days", since: "30d", stepMs: 3_600_000, steps: 720, step: "hour" },
} as const;

type SpanName = keyof typeof spans;

/** How far back the address bar wants to see. */
export function useOver(): SpanName {
  const asked = usePlace().query.get("over");
  return asked === "day" || asked === "month" ? asked : "hour";
}

export function useFigures(over: SpanName): History | null {
  const { since, step } = spans[over];
  return useHistory({ step, since });
}

interface ChartsProps {
  readonly seen: Overview;
  readonly over: SpanName;
  readonly history: History | null;
}

/** Figures of the last hour, day or month. */
export function Charts({ seen, over, history }: ChartsProps): VNode {
  return (
    <section class="stack" aria-labelledby="figures">
      <div class="row spread">
        <h2 id="figures">Figures</h2>
        <nav class="segments" aria-label="How far back">
          {(Object.keys(spans) as SpanName[]).map((name) => (
            <a
              key={name}
              href={pathTo("", { over: name === "hour" ? null : name }) || "./"}
              aria-current={name === over ? "true" : undefined}
              onClick={(event) => {
                event.preventDefault();
                go(pathTo("", { over: name === "hour" ? null : name }), { replace: true });
              }}
            >
              {spans[name].name}
            </a>
          ))}
        </nav>
      </div>
      <div class="charts">
        {history === null || history.points.length === 0 ? (
          <NoFigures isKnown={history !== null} over={over} />
        ) : (
          <Kept history={history} over={over} now={Date.parse(seen.now)} />
        )}
        <Depth seen={seen} history={history} over={over} />
      </div>
    </section>
  );
}

function NoFigures({ isKnown, over }: { readonly isKnown: boolean; readonly over: SpanName }): VNode {
  return (
    <div class="panel empty">
      <strong>{isKnown ? `Nothing ended in the last ${over}` : "No history"}</strong>
      <span>
        {isKnown
          ? "Throughput, lateness and failures are drawn here as jobs end."
          : "Loading, or this server keeps no history."}
      </span>
    </div>
  );
}

interface KeptProps {
  readonly history: History;
  readonly over: SpanName;
  readonly now: number;
}

function Kept({ history, over, now }: KeptProps): VNode {
  const { stepMs, steps, word } = spans[over];
  const { times, points } = filled(history.points, now, stepMs, steps);
  // What is summed is what is drawn.
  const drawn = points.filter((point) => point !== null);
  const latest = points.at(-2) ?? null;
  const inAll = `in the ${word} to ${timeOfDay(now)}`;
  const line = (name: string, tone: string, of: (point: HistoryPoint) => number): Line => ({
    name,
    tone,
    values: points.map((point) => (point === null ? 0 : of(point))),
  });
  const unit = stepMs === 60_000 ? "minute" : "hour";
  const sum = (of: (point: HistoryPoint) => number): number =>
    drawn.reduce((total, point) => total + of(point), 0);
  return (
    <>
      <Chart
        title={`Ended per ${unit}`}
        summary={`${count(sum(endedIn))} ${inAll}, ${count(latest === null ? 0 : endedIn(latest))} in the last whole ${unit}`}
        times={times}
        unit="jobs"
        isOpen
        lines={[
          line("succeeded", "good", ({ succeeded }) => succeeded),
          line("dead, lost or cancelled", "bad", (point) => endedIn(point) - point.succeeded),
        ]}
      />
      <Chart
        title="Started after due"
        summary={`${lateness(drawn, history.lateBoundsMs)} ${inAll}`}
        times={times}
        unit="ms"
        isOpen
        lines={[
          {
            name: "mean",
            tone: "busy",
            values: points.map((point) =>
              point === null || startsOf(point) === 0 ? null : point.lateSumMs / startsOf(point),
            ),
          },
          {
            name: "worst",
            tone: "warn",
            values: points.map((point) => (point === null || startsOf(point) === 0 ? null : point.lateMaxMs)),
          },
        ]}
      />
      <Chart
        title={`Failures per ${unit}`}
        summary={`${count(sum(({ dead }) => dead))} dead, ${count(sum(({ lost }) => lost))} lost, ${count(sum(({ failed, crashed }) => failed + crashed))} retried ${inAll}`}
        times={times}
        unit="jobs"
        isOpen
        lines={[
          line("retried", "warn", ({ failed, crashed }) => failed + crashed),
          line("dead", "bad", ({ dead }) => dead),
          line("lost", "lost", ({ lost }) => lost),
        ]}
      />
    </>
  );
}

function startsOf({ late }: HistoryPoint): number {
  return late.reduce((sum, one) => sum + one, 0);
}

/** Each step of the span: its point, or null if nothing ended. The last one is under way. */
function filled(
  given: readonly HistoryPoint[],
  now: number,
  stepMs: number,
  steps: number,
): { readonly times: number[]; readonly points: (HistoryPoint | null)[] } {
  const byTime = new Map(given.map((point) => [Date.parse(point.at), point]));
  const last = Math.floor(now / stepMs) * stepMs;
  const times = Array.from({ length: steps }, (_, place) => last - (steps - 1 - place) * stepMs);
  return { times: times.map((at) => at / 1_000), points: times.map((at) => byTime.get(at) ?? null) };
}

/** How late the slowest 5 % were, as exact as the histogram is. */
function lateness(points: readonly HistoryPoint[], bounds: readonly number[]): string {
  const buckets = Array.from({ length: bounds.length + 1 }, (_, bucket) =>
    points.reduce((sum, { late }) => sum + (late[bucket] ?? 0), 0),
  );
  const all = buckets.reduce((sum, one) => sum + one, 0);
  if (all === 0) return "nothing started";
  let below = 0;
  for (const [bucket, bound] of bounds.entries()) {
    below += buckets[bucket] ?? 0;
    if (below >= all * 0.95) return `95 % within ${span(bound)}`;
  }
  return `${Math.round((below / all) * 100)} % within ${span(bounds.at(-1) ?? 0)}`;
}

/** The most that was due in each whole step, and in the one that is under way up to now. A step without a figure had nothing due. */
function Depth({ seen, history, over }: ChartsProps): VNode {
  const { stepMs, steps } = spans[over];
  const now = Date.parse(seen.now);
  const { times, points } = filled(history?.points ?? [], now, stepMs, steps);
  const sum = (of: (queue: Overview["queues"][number]) => number): number =>
    seen.queues.reduce((total, queue) => total + of(queue), 0);
  const due = sum((queue) => queue.due);
  const kept = points.slice(0, -1).map((point) => (history === null ? null : (point?.dueMax ?? 0)));
  const latest = Math.max(due, points.at(-1)?.dueMax ?? 0);
  const most = Math.max(latest, ...kept.map((value) => value ?? 0));
  return (
    <Chart
      title="Depth"
      summary={`${count(due)} due, ${count(sum((queue) => queue.active))} active now, at most ${count(most)} due`}
      times={[...times.slice(0, -1), now / 1_000]}
      unit="jobs"
      lines={[{ name: "due", tone: "warn", values: [...kept, latest] }]}
    />
  );
}
