import type { MetricsListener, ProbeAnswers } from "./listener.ts";
import type { Prometheus } from "./prometheus.ts";

/** The metrics of an app or a consumer and, if wanted, the port at which they are shown. */
export class Observation {
  readonly #metrics: Promise<Prometheus>;
  readonly #probes: ProbeAnswers | null;
  #listener: MetricsListener | null = null;
  #port: number | null = null;

  /** @param probes what `/healthz` and `/readyz` answer; null: they are not there. */
  constructor(metrics: Promise<Prometheus>, probes: ProbeAnswers | null) {
    this.#metrics = metrics;
    this.#probes = probes;
    // A caller that starts it, or asks for the figures, gets the failure.
    this.#metrics.catch(() => {});
  }

  get port(): number | null {
    return this.#port;
  }

  async text(): Promise<string> {
    return (await this.#metrics).text();
  }

  async start({ port, host }: { readonly port: number | null; readonly host: string }): Promise<void> {
    const metrics = await this.#metrics;
    if (port === null) return;
    // Imported by name, node:http loads undici too: 17 MB that only those who serve metrics need.
    const { MetricsListener } = await import("./listener.ts");
    const listener = new MetricsListener(metrics, this.#probes);
    this.#port = await listener.start(port, host);
    this.#listener = listener;
  }

  async stop(): Promise<void> {
    await this.#listener?.stop();
    this.#listener = null;
    this.#port = null;
  }
}
