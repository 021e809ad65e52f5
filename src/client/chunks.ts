import type { Clock } from "../clock.ts";

/** How many jobs one trip takes: enough to share its cost, few enough that nothing waits long behind it. */
export const enqueueChunk = 1_000;

export interface Chunk<T, R> {
  readonly items: readonly T[];
  /** How many came before it. */
  readonly start: number;
  readonly written: Promise<R>;
}

/**
 * Writes items in their order, a chunk at a time. The next chunk is handed over while one is written, so the store can prepare it; it is sent when
 * that one is done, and before `settle` is called for that one.
 *
 * @param write receives the promise of the previous chunk, which it must wait for.
 */
export async function writeInChunks<T, R>(
  clock: Clock,
  items: readonly T[],
  write: (items: readonly T[], follows: Promise<R> | undefined) => Promise<R>,
  settle: (chunk: Chunk<T, R>) => Promise<void>,
): Promise<void> {
  const turn = (): Promise<void> => new Promise((resolve) => clock.defer(resolve));
  let before: Chunk<T, R> | null = null;
  for (let start = 0; start < items.length; start += enqueueChunk) {
    const part = items.slice(start, start + enqueueChunk);
    const written = write(part, before?.written);
    written.catch(ignore);
    if (before !== null) {
      await before.written.catch(ignore);
      await turn();
      await settle(before);
    } else if (items.length > enqueueChunk) await turn();
    before = { items: part, start, written };
  }
  if (before !== null) await settle(before);
}

function ignore(): void {}
