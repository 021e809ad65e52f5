import { EscapementError } from "../errors.ts";
import { Semaphore } from "../runtime/semaphore.ts";

/**
 * For transactions that run a caller's function: they take as long as they like, and leave connections to all others. A call throws
 * `store-busy` when none of those inside has ended for long.
 */
export function transactionSemaphore(places: number, longestWaitMs = 60_000): Semaphore {
  const stuck = (): Error =>
    new EscapementError(
      "store-busy",
      `none of the ${places} transactions has ended for ${longestWaitMs} ms; look for functions that hang in them`,
    );
  return new Semaphore(places, { longestWaitMs, stuck });
}
