import { randomUUID } from "node:crypto";
import { silentLogger } from "../../../log.ts";
import type { Store } from "../../../store.ts";
import type { ConformanceHarness } from "../../../testing/conformance/harness.ts";
import { VirtualClock } from "../../../testing/virtual-clock.ts";
import { type PostgresOptions, postgres } from "../index.ts";

/** A name for a schema that nobody else uses. */
export function newSchema(): string {
  return `test_${randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/** Stores in one schema on a clock that the test moves. */
export function harness(options: PostgresOptions): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = postgres({ clock, schema: newSchema(), connections: 3, ...options });
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
