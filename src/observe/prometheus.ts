import type { Registry } from "prom-client";
import { EscapementError } from "../errors.ts";
import { cannotLoad } from "../runtime/cannot-load.ts";
import type { MetricsRegistry } from "../settings.ts";
import type { Counting, Instruments, Measuring, Reading } from "../telemetry/instruments.ts";

type Client = typeof import("prom-client");

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];

/** Counts by prom-client, and shows it in the form that Prometheus reads. */
export class Prometheus implements Instruments {
  readonly #client: Client;
  readonly #registry: Registry;

  /**
   * prom-client is loaded only here: apps without metrics do not need it.
   *
   * @param registry the user's own; null: one for this app alone.
   */
  static async load(registry: MetricsRegistry | null): Promise<Prometheus> {
    return new Prometheus(await loadClient(), registry);
  }

  constructor(client: Client, registry: MetricsRegistry | null) {
    this.#client = client;
    // prom-client's own class has private members, which nothing here calls.
    this.#registry = (registry as Registry | null) ?? new client.Registry();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  counter(name: string, help: string, labelNames: readonly string[] = []): Counting {
    this.#refuseSecond(name);
    return new this.#client.Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  histogram(name: string, help: string, labelNames: readonly string[] = []): Measuring {
    this.#refuseSecond(name);
    const registers = [this.#registry];
    return new this.#client.Histogram({ name, help, labelNames, buckets: seconds, registers });
  }

  gauge(name: string, help: string, labelNames: readonly string[], read: () => readonly Reading[]): void {
    this.#refuseSecond(name);
    new this.#client.Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset();
        // Without labels, a reset leaves a zero behind.
        if (labelNames.length === 0) this.remove();
        for (const { labels, value } of read()) this.set(labels, value);
      },
    });
  }

  /** Two apps that add to one figure could not be distinguished. */
  #refuseSecond(name: string): void {
    if (this.#registry.getSingleMetric(name) === undefined) return;
    throw new EscapementError(
      "metrics-unavailable",
      `expected metrics.registry to be used by one app or consumer, got one that has ${name} already; give each its own, and merge them with Registry.merge`,
    );
  }
}

function loadClient(): Promise<Client> {
  return import("prom-client").catch(
    cannotLoad({
      code: "metrics-missing-client",
      who: "the option metrics",
      packages: ["prom-client"],
    }),
  );
}
