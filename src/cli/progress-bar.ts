import { columnsOf } from "./output.ts";
import { cutTo } from "./text-width.ts";
import { short } from "./times.ts";

const barWidth = 24;
const showEveryMs = 100;
const tickMs = 1_000;

/** One line on the screen that is written over; where there is no screen, nothing. */
export class ProgressBar {
  readonly #stream: NodeJS.WriteStream;
  readonly #isShown: boolean;
  #shownAtMs = 0;

  constructor(isShown: boolean, stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream;
    this.#isShown = isShown && stream.isTTY;
  }

  /** @param total null when it is unknown. */
  show(text: string, done: number, total: number | null): void {
    const now = performance.now();
    if (!this.#isShown || now - this.#shownAtMs < showEveryMs) return;
    this.#shownAtMs = now;
    const line = total === null || total === 0 ? text : `${barOf(done / total)} ${text}`;
    this.#stream.write(`\r\u001b[K${cutTo(line, columnsOf(this.#stream) - 1)}`);
  }

  /** Shows what is done, and for how long already, while work runs that does not say how far it is. */
  async during<T>(text: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const show = (): void => this.show(`${text}: ${short(performance.now() - startedAt)}`, 0, null);
    show();
    const timer = setInterval(show, tickMs);
    try {
      return await work();
    } finally {
      clearInterval(timer);
      this.end();
    }
  }

  end(): void {
    if (this.#isShown) this.#stream.write("\r\u001b[K");
  }
}

function barOf(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
  return `[${"█".repeat(full)}${"░".repeat(barWidth - full)}]`;
}
