import { silentLogger } from "../../../log.ts";
import type { StoreContext } from "../../../store/opening.ts";
import type { Store } from "../../../store/store.ts";
import type { ConformanceHarness } from "../../../testing/conformance/harness.ts";
import { VirtualClock } from "../../../testing/virtual-clock.ts";
import { type RedisOptions, redis } from "../index.ts";

let prefixes = 0;

/** What the keys of a test start with, on a server that others use, too. */
export function newPrefix(server: { readonly name: string }): string {
  prefixes += 1;
  return `${server.name}-${process.pid}-${prefixes}`;
}

/** Stores on a clock that the test moves. */
export function harness(options: RedisOptions): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = redis({ clock, ...options });
  return {
    async open(namespace = "conformance"): Promise<Store> {
      const store = await factory.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}

/** A store that goes by the server's clock, as in production. */
export async function openStore(options: RedisOptions, context: StoreContext): Promise<Store> {
  const store = await redis(options).open(context);
  await store.migrate();
  return store;
}
