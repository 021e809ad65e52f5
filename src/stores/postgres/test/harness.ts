import { randomUUID } from "node:crypto";
import { silentLogger } from "../../../log.ts";
import type { Store } from "../../../store/store.ts";
import type { ConformanceHarness } from "../../../testing/conformance/harness.ts";
import { VirtualClock } from "../../../testing/virtual-clock.ts";
import { type PostgresOptions, postgres } from "../index.ts";

/** A name for a schema that nobody else uses. */
export function newSchema(): string {
  return `test_${randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/** The schema of every {@link harness} of this process. */
export const schema = newSchema();
let spaces = 0;

/**
 * Stores on a clock that the test moves. All of a file share the schema, for making it takes longer than most tests; each harness has
 * namespaces of its own.
 */
export function harness(options: PostgresOptions): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = postgres({ clock, schema, connections: 3, ...options });
  const space = ++spaces;
  return {
    async open(name = "conformance"): Promise<Store> {
      const namespace = `${name} ${space}`;
      const store = await factory.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}
