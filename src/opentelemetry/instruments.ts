import type { Meter } from "@opentelemetry/api";
import type { Instruments } from "../telemetry/instruments.ts";

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];

/**
 * The figures of `metrics` through the OpenTelemetry API. Names lose what Prometheus wants at their end, which exporters to Prometheus put
 * back: there they are the same as those of prom-client.
 */
export function metered(meter: Meter): Instruments {
  return {
    counter(name, description) {
      const counter = meter.createCounter(name.replace(/_total$/, ""), { description });
      return { inc: (labels) => counter.add(1, labels) };
    },
    histogram(name, description) {
      const advice = { explicitBucketBoundaries: seconds };
      const histogram = meter.createHistogram(...named(name, description, { advice }));
      return { observe: (labels, value) => histogram.record(value, labels) };
    },
    gauge(name, description, _, read) {
      meter.createObservableGauge(...named(name, description, {})).addCallback((result) => {
        for (const { labels, value } of read()) result.observe(value, labels);
      });
    },
  };
}

function named<O extends object>(name: string, description: string, options: O) {
  const bare = name.replace(/_seconds$/, "");
  return [bare, { description, ...options, ...(bare === name ? {} : { unit: "s" }) }] as const;
}
