import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

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
  show(value: number): string;
}

const height = 150;

function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--chart-${name}`).trim();
}

/** A chart over time. Its summary says in words what it shows; the cursor's values stand in its legend. */
export function Chart({ title, times, lines, summary, show }: Props): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = lines.map(({ name }) => name).join(" ");
  const data = [[...times], ...lines.map(({ values }) => [...values])] as unknown as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      const width = element.clientWidth;
      plot.current = new uPlot(optionsOf({ width, lines, show }), latest.current, element);
    };
    draw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    // Colours are drawn, not styled: with the theme they are drawn anew.
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

/** As the reader's language writes it, and only as fine as the axis is. */
function timeOf(seconds: number, stepSeconds: number): string {
  const at = new Date(seconds * 1_000);
  if (stepSeconds >= 86_400) return at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const time = { hour: "2-digit", minute: "2-digit", hour12: false } as const;
  return at.toLocaleTimeString(undefined, stepSeconds < 60 ? { ...time, second: "2-digit" } : time);
}

type Wanted = Pick<Props, "lines" | "show"> & { readonly width: number };

function optionsOf({ width, lines, show }: Wanted): uPlot.Options {
  const axis = {
    stroke: colourOf("ink"),
    grid: { stroke: colourOf("grid"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width,
    height,
    padding: [8, 24, 0, 0],
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      {
        ...axis,
        size: 28,
        space: 70,
        values: (_, ticks, __, ___, step) => ticks.map((at) => timeOf(at, step)),
      },
      { ...axis, size: 52, space: 30, values: (_, ticks) => ticks.map(show) },
    ],
    series: [
      { value: (_, at) => (at == null ? "" : new Date(at * 1_000).toLocaleTimeString()) },
      ...lines.map(({ name, tone }) => ({
        label: name,
        stroke: colourOf(tone),
        fill: `color-mix(in srgb, ${colourOf(tone)} 12%, transparent)`,
        width: 1.5,
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value == null ? "" : show(value)),
      })),
    ] as uPlot.Series[],
  };
}
