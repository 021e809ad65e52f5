import { randomUUID } from "node:crypto";
import { systemClock } from "../../../clock.ts";
import { silentLogger } from "../../../log.ts";
import type { Store } from "../../../store/store.ts";
import type { ConformanceHarness } from "../../../testing/conformance/harness.ts";
import { VirtualClock } from "../../../testing/virtual-clock.ts";
import { type MysqlOptions, mysql } from "../index.ts";

/** For the option `skip` of a test that asks for SKIP LOCKED by name: MariaDB has it since 10.6. */
export function lacksSkipLocked(server: {
  readonly skip: false | string;
  readonly version: string;
}): false | string {
  const isOld = server.skip === false && /^10\.[0-5]\b/.test(server.version);
  return isOld && `MariaDB ${server.version} does not know it`;
}

/** A prefix of tables that nobody else uses. */
export function newPrefix(): string {
  return `t${randomUUID().replaceAll("-", "").slice(0, 16)}_`;
}

/** The prefix of every {@link harness} of this process. */
export const tablePrefix = newPrefix();
let spaces = 0;

/**
 * Stores on a clock that the test moves. All of a file share the tables, for making them takes longer than most tests; each harness has
 * namespaces of its own.
 */
export function harness(
  options: MysqlOptions,
  close: () => Promise<void> = async () => undefined,
): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = mysql({ clock, tablePrefix, ...options });
  const space = ++spaces;
  return {
    async open(name = "conformance"): Promise<Store> {
      const namespace = `${name} ${space}`;
      const store = await factory.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close,
  };
}

/** A store on the server's own clock. */
export async function open(options: MysqlOptions, namespace = "n"): Promise<Store> {
  const store = await mysql(options).open({ namespace, clock: systemClock, log: silentLogger });
  await store.migrate();
  return store;
}
