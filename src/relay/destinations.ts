import type { AnyDefinition } from "../definition.ts";
import type { Logger } from "../log.ts";
import {
  type PublishResult,
  type Transport,
  type TransportContext,
  withoutSecrets,
} from "../message/transport.ts";
import type { DestinationState } from "../store/nodes.ts";
import { canary } from "./canary.ts";

const firstOpenMs = 100;
const longestOpenMs = 5_000;
/** How much of an error others are shown. */
const longestError = 300;
/** The same trouble is logged once in this time. */
const logEveryMs = 60_000;

/**
 * Skips a destination for a while when nothing of a batch gets through: twice as long each time, and with half as many
 * jobs in flight afterwards. A broker that is down must not cost each waiting job a rollback. As with every circuit breaker,
 * "open" means that nothing passes.
 */
export class CircuitBreaker {
  #failures = 0;
  /** When the last failure was counted. */
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #openUntilMs = Number.NEGATIVE_INFINITY;

  isOpen(nowMs: number): boolean {
    return nowMs < this.#openUntilMs;
  }

  /** How many batches in a row did not get through at all. */
  get failures(): number {
    return this.#failures;
  }

  /** How many of `most` may be in flight. */
  limit(most: number): number {
    return Math.max(1, Math.floor(most / 2 ** Math.min(this.#failures, 30)));
  }

  /**
   * Counts the results of a batch. Several batches are in flight at once, and one cause fails them all, so a batch
   * begun before the last failure was counted is not another failure.
   *
   * @returns for how long it is open now; 0 when it is closed.
   */
  record(results: readonly PublishResult[], begunAtMs: number, nowMs: number): number {
    if (results.some(reached)) {
      // The destination is there, so what opened the circuit before no longer counts.
      this.#failures = 0;
      this.#openUntilMs = Number.NEGATIVE_INFINITY;
      return 0;
    }
    const askedMs = results.map((result) => (result.kind === "refused" ? (result.retryAfterMs ?? 0) : 0));
    this.#openFor(Math.min(Math.max(0, ...askedMs), longestOpenMs), nowMs);
    if (begunAtMs >= this.#failedAtMs) {
      this.#openFor(Math.min(firstOpenMs * 2 ** Math.min(this.#failures, 16), longestOpenMs), nowMs);
      this.#failures += 1;
      this.#failedAtMs = nowMs;
    }
    return Math.max(0, this.#openUntilMs - nowMs);
  }

  #openFor(ms: number, nowMs: number): void {
    this.#openUntilMs = Math.max(this.#openUntilMs, nowMs + ms);
  }
}

/** Whether the result shows that the destination works, even if it refused this one message. */
function reached(result: PublishResult): boolean {
  if (result.kind === "refused") return result.permanent || result.ofJob === true;
  return result.kind === "acknowledged";
}

export interface DestinationParts {
  readonly kind: string;
  readonly destination: string;
  readonly transport: Transport;
  readonly log: Logger;
}

/**
 * A topic, subject, stream or URL behind an open transport. It may share the transport with others, but its failures
 * are its own.
 */
export class Destination {
  readonly kind: string;
  readonly name: string;
  readonly transport: Transport;
  readonly breaker = new CircuitBreaker();
  readonly #parts: DestinationParts;
  #error: string | null = null;
  #loggedAtMs: number | null = null;

  constructor(parts: DestinationParts) {
    this.#parts = parts;
    this.kind = parts.kind;
    this.name = parts.destination;
    this.transport = parts.transport;
  }

  /** Its state, for nodes and screens. */
  get state(): DestinationState {
    const { kind: transport, destination } = this.#parts;
    const error = this.#error?.slice(0, longestError) ?? null;
    return { transport, destination: withoutSecrets(destination), failures: this.breaker.failures, error };
  }

  /** @returns for how long it is skipped now; 0 when it is not. See {@link CircuitBreaker.record}. */
  record(results: readonly PublishResult[], begunAtMs: number, nowMs: number): number {
    const openMs = this.breaker.record(results, begunAtMs, nowMs);
    if (this.breaker.failures === 0) this.#recovered();
    else this.#failed(results, nowMs);
    return openMs;
  }

  #failed(results: readonly PublishResult[], nowMs: number): void {
    const failed = results.find((result) => result.kind !== "acknowledged");
    if (failed === undefined) return;
    this.#error = failed.error.message;
    if (this.#loggedAtMs !== null && nowMs - this.#loggedAtMs < logEveryMs) return;
    this.#loggedAtMs = nowMs;
    const { kind: transport, destination, log } = this.#parts;
    log.warn({ transport, destination, error: this.#error }, "destination unreachable; jobs are waiting");
  }

  #recovered(): void {
    this.#error = null;
    if (this.#loggedAtMs === null) return;
    this.#loggedAtMs = null;
    const { kind: transport, destination, log } = this.#parts;
    log.info({ transport, destination }, "destination reachable again");
  }
}

/** All destinations of an app's routes. Those with the same kind and address share one open transport. */
export class Destinations {
  readonly #transports = new Map<string, Transport>();
  readonly #byPlace = new Map<string, Destination>();
  readonly #byJobName = new Map<string, Destination>();

  static async open(definitions: Iterable<AnyDefinition>, context: TransportContext): Promise<Destinations> {
    const destinations = new Destinations();
    try {
      for (const definition of definitions) await destinations.#add(definition, context);
    } catch (error) {
      await destinations.close();
      throw error;
    }
    return destinations;
  }

  async #add({ name, route }: AnyDefinition, context: TransportContext): Promise<void> {
    if (route === null) return;
    const { destination, transport: factory } = route;
    const { kind, address } = factory;
    const key = `${kind}\n${address}`;
    const transport = this.#transports.get(key) ?? (await factory.open(context));
    this.#transports.set(key, transport);
    const place = `${key}\n${destination}`;
    const known =
      this.#byPlace.get(place) ?? new Destination({ kind, destination, transport, log: context.log });
    this.#byPlace.set(place, known);
    this.#byJobName.set(name, known);
  }

  get count(): number {
    return this.#byPlace.size;
  }

  /** Where jobs of this name go; undefined when this process has no route for them. */
  of(jobName: string): Destination | undefined {
    return this.#byJobName.get(jobName);
  }

  /** The state of each destination, those in trouble first. The canary's is left out. */
  get states(): DestinationState[] {
    const own = this.#byJobName.get(canary.name);
    return [...this.#byPlace.values()]
      .filter((destination) => destination !== own)
      .map(({ state }) => state)
      .toSorted((a, b) => b.failures - a.failures);
  }

  async close(): Promise<void> {
    await Promise.allSettled(Array.from(this.#transports.values(), (transport) => transport.close()));
  }
}
