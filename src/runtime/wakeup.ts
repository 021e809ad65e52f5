import type { Clock } from "../clock.ts";

/** Where a loop sleeps until there is something to do. A wake-up that comes early is not lost. */
export class Wakeup {
  readonly #clock: Clock;
  #resolve: (() => void) | null = null;
  #awake = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes the loop at the end of this turn of the event loop, so what happens in one turn shares one trip. */
  wake(): void {
    if (this.#awake) return;
    this.#awake = true;
    this.#clock.defer(() => this.#resolve?.());
  }

  /** Sleeps until woken, or for `ms`. */
  wait(ms: number): Promise<void> {
    return this.#sleep(ms, true);
  }

  /** Sleeps for `ms` whatever happens. */
  pause(ms: number): Promise<void> {
    return this.#sleep(ms, false);
  }

  #sleep(ms: number, wakeable: boolean): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        cancel();
        this.#resolve = null;
        if (wakeable) this.#awake = false;
        resolve();
      };
      const cancel = this.#clock.after(ms, finish);
      if (!wakeable) return;
      this.#resolve = finish;
      if (this.#awake) this.#clock.defer(() => this.#resolve?.());
    });
  }
}
