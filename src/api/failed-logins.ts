/** Counts failed logins by address, and says how long each address has to wait. */

interface Failures {
  readonly count: number;
  /** On the monotonic clock. */
  readonly blockedUntil: number;
}

const freeTries = 5;
const firstWaitMs = 1_000;
const longestWaitMs = 60_000;
const forgottenAfterMs = 15 * 60_000;
/** An attacker with many addresses must not fill the memory: the oldest go first. */
const mostAddresses = 10_000;

export class FailedLogins {
  readonly #now: () => number;
  readonly #byAddress = new Map<string, Failures>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How long an address has to wait; 0 when it may try. */
  waitMs(address: string): number {
    const failures = this.#byAddress.get(address);
    return failures === undefined ? 0 : Math.max(0, failures.blockedUntil - this.#now());
  }

  failed(address: string): void {
    const now = this.#now();
    const before = this.#byAddress.get(address);
    const isRecent = before !== undefined && now - before.blockedUntil < forgottenAfterMs;
    const count = (isRecent ? before.count : 0) + 1;
    const wait =
      count < freeTries ? 0 : Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(30, count - freeTries));
    // Taken out first, so the map is in the order of the latest failure.
    this.#byAddress.delete(address);
    this.#byAddress.set(address, { count, blockedUntil: now + wait });
    const [oldest] = this.#byAddress.keys();
    if (this.#byAddress.size > mostAddresses && oldest !== undefined) this.#byAddress.delete(oldest);
  }

  succeeded(address: string): void {
    this.#byAddress.delete(address);
  }
}
