import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { History, HistoryPoint, Overview } from "../api/answers.ts";
import { useHistory } from "../api/history.ts";
import { compact, count, span } from "../format.ts";
import { Chart, type Line } from "../parts/chart.tsx";
import { go, pathTo, usePlace } from "../router.ts";
import { endedIn, perMinute } from "./rates.ts";

const spans = {
  hour: { name: "Hour", since: "1h", stepMs: 60_000, steps: 60, step: "minute" },
  day: { name: "Day", since: "24h", stepMs: 60_000, steps: 1_440, step: "minute" },
  month: { name: "30 days", since: "30d", stepMs: 3_600_000, steps: 720, step: "hour" },
} as const;

type SpanName = keyof typeof spans;

/** Figures of the last hour, day or month, and the depth since this page was opened. */
export function Charts({ seen }: { readonly seen: Overview }): VNode {
  const asked = usePlace().query.get("over");
  const over: SpanName = asked === "day" || asked === "month" ? asked : "hour";
  const { since, step } = spans[over];
  const history = useHistory({ step, since });
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
          <Kept history={history} over={over} />
        )}
        <Depth seen={seen} />
      </div>
    </section>
  );
}

function NoFigures({ isKnown, over }: { readonly isKnown: boolean; readonly over: SpanName }): VNode {
  return (
    <div class="panel empty">
      <strong>{isKnown ? `Nothing ended in the last ${over}` : "No figures of the past"}</strong>
      <span>
        {isKnown
          ? "Throughput, lateness and failures are drawn here as jobs end."
          : "They are on their way, or this server keeps none. The depth is drawn from now on."}
      </span>
    </div>
  );
}

function Kept({ history, over }: { readonly history: History; readonly over: SpanName }): VNode {
  const { stepMs, steps } = spans[over];
  const { times, points } = filled(history.points, stepMs, steps);
  const line = (name: string, tone: string, of: (point: HistoryPoint) => number): Line => ({
    name,
    tone,
    values: points.map((point) => (point === null ? 0 : of(point))),
  });
  const unit = stepMs === 60_000 ? "minute" : "hour";
  const sum = (of: (point: HistoryPoint) => number): number =>
    history.points.reduce((total, point) => total + of(point), 0);
  const mean = sum(endedIn) / steps;
  return (
    <>
      <Chart
        title={`Ended per ${unit}`}
        summary={`${count(sum(endedIn))} in all, ${perMinute(mean)} per ${unit}`}
        times={times}
        show={compact}
        lines={[line("succeeded", "good", ({ succeeded }) => succeeded)]}
      />
      <Chart
        title="Started after due"
        summary={lateness(history.points, history.lateBoundsMs)}
        times={times}
        show={span}
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
        summary={`${count(sum(({ dead }) => dead))} dead, ${count(sum(({ lost }) => lost))} lost, ${count(sum(({ failed, crashed }) => failed + crashed))} retried`}
        times={times}
        show={compact}
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

/** Each step of the span: its point, or null where nothing ended. */
function filled(
  given: readonly HistoryPoint[],
  stepMs: number,
  steps: number,
): { readonly times: number[]; readonly points: (HistoryPoint | null)[] } {
  const byTime = new Map(given.map((point) => [Date.parse(point.at), point]));
  const last = Math.floor(Date.now() / stepMs) * stepMs;
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

const mostSeen = 600;

/** How much waits, as this page has seen it: the store keeps no history of that. */
function Depth({ seen }: { readonly seen: Overview }): VNode {
  const [samples, setSamples] = useState<readonly { at: number; due: number; active: number }[]>([]);
  const sum = (of: (queue: Overview["queues"][number]) => number): number =>
    seen.queues.reduce((total, queue) => total + of(queue), 0);
  const due = sum((queue) => queue.due);
  const active = sum((queue) => queue.active);
  useEffect(() => {
    setSamples((before) => [
      ...before.slice(1 - mostSeen),
      { at: Date.parse(seen.now) / 1_000, due, active },
    ]);
  }, [seen.now]);
  return (
    <Chart
      title="Depth, since you opened this page"
      summary={`${count(due)} due, ${count(active)} active now`}
      times={samples.map(({ at }) => at)}
      show={compact}
      lines={[
        { name: "due", tone: "warn", values: samples.map((one) => one.due) },
        { name: "active", tone: "busy", values: samples.map((one) => one.active) },
      ]}
    />
  );
}
