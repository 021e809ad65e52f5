/** Lets so many through at once: transactions that wait for the caller's function must leave connections to everybody else. */
export class Turnstile {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(room: number) {
    this.#free = room;
  }

  async enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
