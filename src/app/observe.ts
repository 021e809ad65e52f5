import type { Clock } from "../clock.ts";
import type { Events } from "../events.ts";
import type { ProbeAnswers } from "../observe/listener.ts";
import { type MetricsSource, observeApp } from "../observe/metrics.ts";
import { Observation } from "../observe/observation.ts";
import { Prometheus } from "../observe/prometheus.ts";
import type { MetricsRegistry, Settings } from "../settings.ts";
import type { Node } from "./node.ts";

/** Counts what happens in an app, wherever its settings want it. Null if Prometheus is not wanted. */
export function observe(
  app: ProbeAnswers & { readonly settings: Settings },
  events: Events,
  clock: Clock,
  node: () => Node | null,
): Observation | null {
  const { metrics, telemetry } = app.settings;
  const source: MetricsSource = {
    on: (name, counter) => events.count(name, counter),
    now: () => clock.now(),
    relay: () => node()?.relayStatus ?? null,
    depths: () => node()?.depths ?? null,
  };
  if (telemetry !== null && telemetry.instruments !== null) observeApp(source, telemetry.instruments);
  return metrics === null ? null : new Observation(inPrometheus(source, metrics.registry), app);
}

async function inPrometheus(source: MetricsSource, registry: MetricsRegistry | null): Promise<Prometheus> {
  const prometheus = await Prometheus.load(registry);
  observeApp(source, prometheus);
  return prometheus;
}
