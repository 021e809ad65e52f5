import { MetricsListener } from "./listener.ts";
import { Metrics, type MetricsSource } from "./metrics.ts";

/** An app's metrics and, if wanted, the port at which they are shown. */
export class Observation {
  readonly #metrics: Promise<Metrics>;
  #listener: MetricsListener | null = null;
  #port: number | null = null;

  /** Counting begins at once. */
  constructor(source: MetricsSource) {
    this.#metrics = Metrics.observe(source);
    // Whoever starts the app, or asks for the text, hears of it.
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
  }
}
