import { type Clock, sleep } from "../clock.ts";
import { reconnectDelayMs } from "../runtime/transient.ts";

export interface RenewalLoopParts {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  random(): number;
  /** Renews every lease that is held; the signal fires when the loop is stopping. */
  renew(signal: AbortSignal): Promise<void>;
  onError(error: unknown): void;
}

/** Renews leases at each heartbeat and, after a failure, as soon as the store answers again. */
export class RenewalLoop {
  readonly #parts: RenewalLoopParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;

  constructor(parts: RenewalLoopParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, heartbeatMs, random, renew, onError } = this.#parts;
    let failures = 0;
    while (!signal.aborted) {
      await sleep(clock, failures === 0 ? heartbeatMs : reconnectDelayMs(failures, random()), signal);
      if (signal.aborted) return;
      try {
        await renew(signal);
        failures = 0;
      } catch (error) {
        failures += 1;
        onError(error);
      }
    }
  }
}
