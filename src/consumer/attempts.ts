const mostKeys = 100_000;

/** How often messages failed in this process, for senders that do not count. If there are too many, the oldest are forgotten. */
export class Attempts {
  readonly #failures = new Map<string, number>();

  of(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  count(key: string): void {
    const failures = this.of(key) + 1;
    this.#failures.delete(key);
    this.#failures.set(key, failures);
    const oldest = this.#failures.size > mostKeys ? this.#failures.keys().next().value : undefined;
    if (oldest !== undefined) this.#failures.delete(oldest);
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }
}
