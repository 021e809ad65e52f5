import type { ClaimRef } from "../store/claims.ts";
import type { Store } from "../store/store.ts";
import type { Held } from "./held.ts";

/**
 * The held claims that a notice names and that the store really wants stopped. A notice is only a hint: others can
 * write to the channel too, and stopping an at-most-once job ends it.
 */
export async function cancelledAmong(
  store: Store,
  held: ReadonlyMap<string, Held>,
  ids: readonly string[],
): Promise<ClaimRef[]> {
  const claims = [...new Set(ids)].flatMap((id) => held.get(id)?.job ?? []);
  if (claims.length === 0) return [];
  try {
    const jobs = await store.get({ ids: claims.map(({ id }) => id) });
    return claims.filter(
      ({ token }, place) => jobs[place]?.cancelRequested === true && jobs[place].token === token,
    );
  } catch {
    // The next heartbeat asks again, and reports a store that does not answer.
    return [];
  }
}
