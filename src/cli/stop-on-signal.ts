/** Aborted by Ctrl-C or SIGTERM, for commands that run until then. */
export function stopOnSignal(): AbortSignal {
  const stopping = new AbortController();
  onStopSignal(() => stopping.abort());
  return stopping.signal;
}

/**
 * Calls `stop` at the first Ctrl-C or SIGTERM. One that comes later than a second after it is impatience: `abandon` is called, and the
 * process ends. An earlier one is the same Ctrl-C, sent twice: by the terminal, and by npm.
 *
 * @returns a function that ends the listening.
 */
export function onStopSignal(stop: () => void, abandon: () => void = () => {}): () => void {
  let firstAt: number | null = null;
  const hear = (): void => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt > 1_000) {
      abandon();
      process.exit(130);
    }
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.removeListener(signal, hear);
  };
}
