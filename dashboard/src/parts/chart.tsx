import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clockStyle, compact, span } from "../format.ts";

export interface Line {
  readonly name: string;
  /** A colour of the palette: `good`, `bad`. */
  readonly tone: string;
  readonly values: readonly (number | null)[];
}

interface Props {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  /** What the latest values come to, in words. */
  readonly summary: string;
  readonly unit: Unit;
  /** Whether the last step is under way: its value still grows, so the way to it is dashed. */
  readonly isOpen?: boolean;
}

interface Measure {
  show(value: number): string;
  /** How far apart the marks of its axis may be: half a job is no mark, and 80 s are a minute and a third. */
  readonly steps: number[];
}

const powers = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
const second = 1_000;
const minute = 60_000;
const hour = 3_600_000;

const units = {
  jobs: { show: compact, steps: powers.flatMap((power) => [power, 2 * power, 5 * power]) },
  ms: {
    show: span,
    steps: [
      ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
      ...[1, 2, 5, 10, 15, 30].map((many) => many * second),
      ...[1, 2, 5, 10, 15, 30].map((many) => many * minute),
      ...[1, 2, 6, 12, 24, 48, 168, 720].map((many) => many * hour),
    ],
  },
} satisfies Readonly<Record<string, Measure>>;

type Unit = keyof typeof units;

const height = 150;
const labelFont = "11px system-ui, sans-serif";

function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--chart-${name}`).trim();
}

/** A chart over time. Its summary says in words what it shows; the cursor's values stand in its legend. */
export function Chart({ title, times, lines, summary, unit, isOpen = false }: Props): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = lines.map(({ name }) => name).join(" ");
  const data = dataOf(times, lines, isOpen);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      const width = element.clientWidth;
      plot.current = new uPlot(optionsOf({ width, lines, unit, isOpen }), latest.current, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    // Colours are drawn, not styled: a new theme needs a redraw.
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      themed.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(latest.current), [data]);
  return (
    <figure class="panel chart">
      <figcaption>
        <strong>{title}</strong> <span class="soft small">{summary}</span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}

/** Each line up to the last whole step, and behind them, in the same order, the way of each to the step that is under way. */
function dataOf(times: readonly number[], lines: readonly Line[], isOpen: boolean): uPlot.AlignedData {
  const whole = lines.map(({ values }) => (isOpen ? [...values.slice(0, -1), null] : [...values]));
  const open = lines.map(({ values }) =>
    values.map((value, place) => (place < values.length - 2 ? null : value)),
  );
  return [[...times], ...whole, ...(isOpen ? open : [])] as unknown as uPlot.AlignedData;
}

/** As the reader's language writes it, and only as fine as the axis is. */
function timeOf(seconds: number, stepSeconds: number): string {
  const at = new Date(seconds * 1_000);
  if (stepSeconds >= 86_400) return at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  return at.toLocaleTimeString(
    undefined,
    stepSeconds < 60 ? { ...clockStyle, second: "2-digit" } : clockStyle,
  );
}

/** A value between two gaps has no line to be seen by. */
function lonely(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  const places: number[] = [];
  for (const [place, value] of values.entries())
    if (value != null && values[place - 1] == null && values[place + 1] == null) places.push(place);
  return places;
}

/** A single moment has no span of its own: uPlot would make up years around it. */
function timeRange(_: uPlot, first: number | null, last: number | null): uPlot.Range.MinMax {
  const end = last ?? Date.now() / 1_000;
  return first !== null && first < end ? [first, end] : [end - 60, end];
}

/** As wide as its longest label. */
function widthOf({ ctx }: uPlot, labels: readonly string[] | null): number {
  ctx.save();
  ctx.font = labelFont;
  const widths = (labels ?? []).map((label) => ctx.measureText(label).width);
  ctx.restore();
  return Math.ceil(Math.max(24, ...widths)) + 14;
}

type Wanted = Required<Pick<Props, "lines" | "unit" | "isOpen">> & { readonly width: number };

function optionsOf({ width, lines, unit, isOpen }: Wanted): uPlot.Options {
  const { show, steps } = units[unit];
  const axis = {
    stroke: colourOf("ink"),
    grid: { stroke: colourOf("grid"), width: 1 },
    ticks: { show: false },
    font: labelFont,
  };
  return {
    width,
    height,
    padding: [8, 24, 0, 0],
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { x: { range: timeRange }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      {
        ...axis,
        size: 28,
        space: 70,
        values: (_, ticks, __, ___, step) => ticks.map((at) => timeOf(at, step)),
      },
      { ...axis, size: widthOf, space: 30, incrs: steps, values: (_, ticks) => ticks.map(show) },
    ],
    series: [
      {
        value: (_, at) =>
          at == null
            ? ""
            : new Date(at * 1_000).toLocaleTimeString(undefined, { ...clockStyle, second: "2-digit" }),
      },
      ...lines.map(({ name, tone }) => ({
        label: name,
        stroke: colourOf(tone),
        fill: `color-mix(in srgb, ${colourOf(tone)} 12%, transparent)`,
        width: 1.5,
        points: { show: true, size: 5, fill: colourOf(tone), filter: lonely },
        value: (plot: uPlot, value: number | null, series: number, place: number | null) => {
          const known = value ?? plot.data[series + lines.length]?.[place ?? -1];
          return known == null ? "" : show(known);
        },
      })),
      ...(isOpen ? lines : []).map(({ name, tone }) => ({
        label: name,
        // Its line has a legend already.
        class: "open",
        stroke: colourOf(tone),
        width: 1.5,
        dash: [4, 3],
        points: { show: true, size: 5, fill: colourOf(tone), filter: lonely },
      })),
    ] as uPlot.Series[],
  };
}
