import { randomUUID } from "node:crypto";
import { systemClock } from "../../../clock.ts";
import { silentLogger } from "../../../log.ts";
import type { Store } from "../../../store.ts";
import type { ConformanceHarness } from "../../../testing/conformance/harness.ts";
import { VirtualClock } from "../../../testing/virtual-clock.ts";
import { type MysqlOptions, mysql } from "../index.ts";

/** A prefix of tables that nobody else uses. */
export function newPrefix(): string {
  return `t${randomUUID().replaceAll("-", "").slice(0, 16)}_`;
}

/** Stores on the same tables, on a clock that the test moves. */
export function harness(
  options: MysqlOptions,
  close: () => Promise<void> = async () => undefined,
): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = mysql({ clock, tablePrefix: newPrefix(), ...options });
  return {
    async open(namespace = "conformance"): Promise<Store> {
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
