import type { AnyDefinition } from "../definition.ts";
import type { ClaimName } from "../store/claims.ts";

/** Jobs that go through a route are never claimed; those enqueued before their definition had one still run here. */
export function claimNames(definitions: ReadonlyMap<string, AnyDefinition>): ClaimName[] {
  return [...definitions.values()]
    .filter((definition) => definition.run !== null)
    .map(({ name, concurrency, rate }) => ({
      name,
      concurrency: concurrency?.limit ?? null,
      rate: rate === null ? null : { limit: rate.limit, perMs: rate.perMs },
    }));
}
