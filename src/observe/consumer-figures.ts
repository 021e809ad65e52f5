import type { MetricsRegistry, MetricsSettings } from "../settings.ts";
import type { Instruments } from "../telemetry/instruments.ts";
import { Observation } from "./observation.ts";
import { Prometheus } from "./prometheus.ts";

/** The name for messages that carry no name known here: strangers must not create time series. */
export const unknownName = "";

/** A message that a consumer has taken, as far as its figures need it. */
export interface Taken {
  readonly name: string;
  readonly fireAt: Date;
  readonly publishedAt: Date | null;
  /** When it arrived here, by the clock of this process. */
  readonly receivedAt: number;
}

/**
 * What a consumer counts. How late a handler starts is made of three spans: until the message was published, which its relay counts, then the
 * wait in the broker, then the wait here. The store's clock says when it was due and published, this process's clock the rest: as
 * far as the two differ, the figures are off. None is ever less than zero.
 */
export class ConsumerFigures {
  readonly #instruments: Promise<Figures>;
  readonly #observation: Observation;

  /** @param registry the user's own; null: one for this consumer alone. */
  constructor(registry: MetricsRegistry | null) {
    const instruments = Prometheus.load(registry);
    this.#instruments = instruments.then(makeFigures);
    this.#instruments.catch(() => {});
    this.#observation = new Observation(instruments, null);
  }

  get port(): number | null {
    return this.#observation.port;
  }

  text(): Promise<string> {
    return this.#observation.text();
  }

  /** Rejects if there is nothing to count with. */
  start(settings: MetricsSettings): Promise<void> {
    return this.#observation.start(settings);
  }

  stop(): Promise<void> {
    return this.#observation.stop();
  }

  received({ name, publishedAt, receivedAt }: Taken): void {
    if (publishedAt !== null) this.#observe("queueWait", name, receivedAt - publishedAt.getTime());
  }

  /** A handler begins its first attempt. */
  started({ name, fireAt, receivedAt }: Taken, now: number): void {
    this.#observe("start", name, now - receivedAt);
    this.#observe("lateness", name, now - fireAt.getTime());
  }

  ended(name: string, outcome: string, ranMs: number | null): void {
    void this.#instruments.then(({ messages }) => messages.inc({ name, outcome }), ignore);
    if (ranMs !== null) this.#observe("run", name, ranMs);
  }

  /** The outcome of a dead message. */
  buried(outcome: "buried" | "dropped" | "kept"): void {
    void this.#instruments.then(({ burials }) => burials.inc({ outcome }), ignore);
  }

  #observe(figure: Exclude<keyof Figures, "messages" | "burials">, name: string, ms: number): void {
    const seconds = Math.max(0, ms) / 1_000;
    void this.#instruments.then((figures) => figures[figure].observe({ name }, seconds), ignore);
  }
}

/** A caller that starts it, or asks for the figures, learns that there is nothing to count with. */
const ignore = (): void => {};

type Figures = ReturnType<typeof makeFigures>;

function makeFigures(make: Instruments) {
  const byName = ["name"];
  return {
    queueWait: make.histogram(
      "escapement_consumer_queue_wait_seconds",
      "Time from when a message was published until this consumer received it",
      byName,
    ),
    start: make.histogram(
      "escapement_consumer_start_seconds",
      "Time from when this consumer received a message until its handler started",
      byName,
    ),
    lateness: make.histogram(
      "escapement_consumer_lateness_seconds",
      "Time from when a job was due until its handler started here",
      byName,
    ),
    run: make.histogram(
      "escapement_consumer_run_seconds",
      "How long handlers took, however they ended",
      byName,
    ),
    messages: make.counter("escapement_consumed_total", "Delivery attempts by outcome", ["name", "outcome"]),
    burials: make.counter("escapement_burials_total", "Dead messages by outcome", ["outcome"]),
  };
}
