const firstMs = 20;

/**
 * How long to wait before asking again for what was said to be there and was not: twice as long each time in a row, up
 * to a limit. Something else may have written a row that looks due and can never be taken.
 */
export class RepeatDelay {
  #inARow = 0;

  nextMs(mostMs: number): number {
    const delayMs = Math.min(mostMs, firstMs * 2 ** Math.min(this.#inARow, 20));
    this.#inARow += 1;
    return delayMs;
  }

  reset(): void {
    this.#inARow = 0;
  }
}
