/**
 * Time, as the library sees it. Every loop takes its clock from outside, so a test can move it and a
 * simulation can own it.
 */
export interface Clock {
  /** Wall time in milliseconds since 1970. It may jump. */
  now(): number;
  /** Milliseconds that only ever rise, from an arbitrary start that all processes of this machine share until it reboots. */
  monotonic(): number;
  /** Calls back once, no earlier than in `ms`. Returns how to call it off. A timer alone keeps no process alive. */
  after(ms: number, callback: () => void): () => void;
  /** Calls back once the current turn of the event loop is over: what is collected until then shares one trip. */
  defer(callback: () => void): void;
}

/** The longest delay a Node timer takes; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Taken now, so faking time in a test leaves the leases alone. */
const sinceStart = performance.now.bind(performance);

/**
 * performance.now() is by far the cheapest, and counts from the start of its thread; the machine's own count is the same everywhere on it.
 * They tick alike, so the difference is taken once: the closest of several, since anything may happen between two looks.
 */
const startedAt = Array.from({ length: 10 }, () => {
  const before = sinceStart();
  const machine = Number(process.hrtime.bigint()) / 1e6;
  const after = sinceStart();
  return { offset: machine - (before + after) / 2, error: after - before };
}).reduce((best, one) => (one.error < best.error ? one : best)).offset;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => startedAt + sinceStart(),
  after(ms, callback) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const isLast = leftMs <= maxTimerMs;
      timer = setTimeout(
        () => (isLast ? callback() : arm(leftMs - maxTimerMs)),
        isLast ? leftMs : maxTimerMs,
      );
      timer.unref();
    };
    arm(Math.max(ms, 0));
    return () => clearTimeout(timer);
  },
  defer(callback) {
    setImmediate(callback);
  },
};

/**
 * Like {@link sleep}, for a call that the caller awaits: the process stays until it is over. The library's own loops do not keep a process alive.
 */
export async function sleepAwake(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  const keepAlive = clock === systemClock ? setInterval(() => {}, maxTimerMs) : null;
  try {
    await sleep(clock, ms, signal);
  } finally {
    if (keepAlive !== null) clearInterval(keepAlive);
  }
}

/** Resolves after `ms`, or as soon as the signal aborts; the caller asks the signal which it was. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = (): void => {
      cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = clock.after(ms, wake);
    signal?.addEventListener("abort", wake, { once: true });
  });
}
