import { MetricsListener } from "./listener.ts";
import type { Prometheus } from "./prometheus.ts";

/** The metrics of an app or a consumer and, if wanted, the port at which they are shown. */
export class Observation {
  readonly #metrics: Promise<Prometheus>;
  #listener: MetricsListener | null = null;
  #port: number | null = null;

  constructor(metrics: Promise<Prometheus>) {
    this.#metrics = metrics;
    // Whoever starts it, or asks for the text, hears of it.
    this.#metrics.catch(() => {});
  }

  get port(): number | null {
    return this.#port;
  }

  async text(): Promise<string> {
    return (await this.#metrics).text();
  }

  async start({ port, host }: { readonly port: number | null; readonly host: string }): Promise<void> {
    const listener = new MetricsListener(await this.#metrics);
    if (port === null) return;
    this.#port = await listener.start(port, host);
    this.#listener = listener;
  }

  async stop(): Promise<void> {
    await this.#listener?.stop();
    this.#listener = null;
    this.#port = null;
  }
}
