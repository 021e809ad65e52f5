import type { Clock } from "../clock.ts";

/** How long handlers may take to stop once asked. */
export const graceMs = 2_000;

/** Whether it settled in time. */
export async function within(clock: Clock, promise: Promise<unknown>, ms: number): Promise<boolean> {
  const over = Promise.withResolvers<boolean>();
  const cancel = clock.after(ms, () => over.resolve(false));
  // A clock's timers keep no process alive, and this one must be waited for.
  const alive = setInterval(() => {}, 60_000);
  const isOver = await Promise.race([promise.then(() => true), over.promise]);
  cancel();
  clearInterval(alive);
  return isOver;
}
