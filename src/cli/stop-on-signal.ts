/** Aborted by Ctrl-C or SIGTERM, for commands that go on until then; the second signal ends the process. */
export function stopOnSignal(): AbortSignal {
  const stopping = new AbortController();
  const stop = (): void => {
    if (stopping.signal.aborted) process.exit(130);
    stopping.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return stopping.signal;
}
