import type { Events } from "../events.ts";
import type { ProbeAnswers } from "../observe/listener.ts";
import { type MetricsSource, observeApp } from "../observe/metrics.ts";
import { Observation } from "../observe/observation.ts";
import { Prometheus } from "../observe/prometheus.ts";
import type { MetricsSettings } from "../settings.ts";

/** What is counted beside events. */
export type Figures = Omit<MetricsSource, "on">;

export function sourceOf(events: Events, figures: Figures): MetricsSource {
  return { ...figures, on: (name, counter) => events.count(name, counter) };
}

/** Counts what happens in an app for Prometheus. */
export function observe(
  events: Events,
  figures: Figures,
  probes: ProbeAnswers,
  { registry }: MetricsSettings,
): Observation {
  const source = sourceOf(events, figures);
  const load = async (): Promise<Prometheus> => {
    const prometheus = await Prometheus.load(registry);
    observeApp(source, prometheus);
    return prometheus;
  };
  return new Observation(load(), probes);
}
