/** However short the handlers are: as many as a trip carries well. */
const most = 1_000;
/** How many bytes the inputs of jobs that wait here may take, so large ones do not fill the memory. */
const mostCharacters = 4 * 1024 * 1024;
/** How much one job changes what is expected of the next. */
const weight = 1 / 16;
/** Shorter than this, it is not the handler that a job waits for. */
const shortestMs = 0.01;

/**
 * How many jobs to claim before there is room for them: as many as this process will start within `spanMs`, judged by
 * the handlers that it has seen. With slow ones that is none: they are left to processes that have room.
 */
export class LookAhead {
  readonly #spanMs: number;
  readonly #concurrency: number;
  /** How long a handler takes, and how long an input is, on average; null before the first. */
  #handlerMs: number | null = null;
  #characters = 0;

  constructor(spanMs: number, concurrency: number) {
    this.#spanMs = spanMs;
    this.#concurrency = concurrency;
  }

  ran(ms: number, characters: number): void {
    const known = this.#handlerMs ?? ms;
    this.#handlerMs = known + weight * (ms - known);
    this.#characters += weight * (characters - this.#characters);
  }

  /** Handlers take longer than they did: nothing is claimed ahead until some were fast again. */
  stalled(): void {
    this.#handlerMs = Math.max(this.#handlerMs ?? 0, 2 * this.#concurrency * this.#spanMs);
  }

  get wanted(): number {
    if (this.#handlerMs === null) return 0;
    const soon = (this.#concurrency * this.#spanMs) / Math.max(this.#handlerMs, shortestMs);
    return Math.floor(Math.min(soon, most, mostCharacters / Math.max(this.#characters, 1)));
  }
}
