import type { Counter, Histogram, Registry } from "prom-client";
import { EscapementError } from "../errors.ts";

type Client = typeof import("prom-client");

const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];

/** Makes what counts, and shows it in the form that Prometheus reads. */
export class Instruments {
  readonly #client: Client;
  readonly #registry: Registry;

  /** prom-client is loaded only here: whoever wants no metrics does not need it. */
  static async load(): Promise<Instruments> {
    return new Instruments(await loadClient());
  }

  constructor(client: Client) {
    this.#client = client;
    this.#registry = new client.Registry();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  counter(name: string, help: string, labelNames: string[] = []): Counter {
    return new this.#client.Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  histogram(name: string, help: string, labelNames: string[] = []): Histogram {
    return new this.#client.Histogram({
      name,
      help,
      labelNames,
      buckets: seconds,
      registers: [this.#registry],
    });
  }

  /** Asked each time somebody looks; what is null is not shown. */
  gauge(name: string, help: string, read: () => number | null): void {
    new this.#client.Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        const value = read();
        if (value === null) this.remove();
        else this.set(value);
      },
    });
  }
}

async function loadClient(): Promise<Client> {
  try {
    return await import("prom-client");
  } catch (error) {
    throw new EscapementError(
      "metrics-missing-client",
      "metrics need the package prom-client; npm install prom-client, or leave metrics out",
      { cause: error },
    );
  }
}
