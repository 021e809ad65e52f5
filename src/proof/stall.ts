import { sleep, systemClock } from "../clock.ts";
import type { FaultWindow } from "./history.ts";

const askEveryMs = 250;

/**
 * A holder that is kept from running, or from the store, for this long can lose its claims though nobody did anything to it: it renews
 * at every third of a lease, and gives up with a fifth of it left. Anything shorter must cost nothing, so it excuses nothing.
 */
export function stallMs(leaseMs: number): number {
  return leaseMs * (1 - 1 / 3 - 1 / 5);
}

/** Asks the store a plain question again and again, past any proxy: a server that a busy machine keeps from answering is a stall too. */
export class StoreWatch {
  readonly stalls: FaultWindow[] = [];
  readonly #ask: () => Promise<unknown>;
  readonly #leaseMs: number;
  readonly #end = new AbortController();
  readonly #watching: Promise<void>;

  constructor(ask: () => Promise<unknown>, leaseMs: number) {
    this.#ask = ask;
    this.#leaseMs = leaseMs;
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const fromMs = systemClock.monotonic();
      // One that cannot be reached was restarted, which is told elsewhere.
      await this.#ask().catch(() => {});
      const untilMs = systemClock.monotonic();
      if (untilMs - fromMs > stallMs(this.#leaseMs))
        this.stalls.push({ kind: "stall", node: null, fromMs, untilMs, detail: "the store did not answer" });
      await sleep(systemClock, askEveryMs, this.#end.signal);
    }
  }
}
