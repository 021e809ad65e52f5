import type { Clock } from "../clock.ts";

/** How long handlers that were told to stop may take to do so. */
export const graceMs = 2_000;

/** Whether it has settled in time. */
export async function within(clock: Clock, promise: Promise<unknown>, ms: number): Promise<boolean> {
  const over = Promise.withResolvers<boolean>();
  const cancel = clock.after(ms, () => over.resolve(false));
  // A clock's timers keep no process alive, and this is waited for.
  const alive = setInterval(() => {}, 60_000);
  const isOver = await Promise.race([promise.then(() => true), over.promise]);
  cancel();
  clearInterval(alive);
  return isOver;
}
