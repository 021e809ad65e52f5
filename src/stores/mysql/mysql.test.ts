import { describe } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { type MysqlOptions, mysql } from "./index.ts";

const server = await testbed.mysql();

function harness(options: MysqlOptions): ConformanceHarness {
  const clock = new VirtualClock();
  const factory = mysql({ url: server.url, clock, ...options });
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

describe("on MariaDB or MySQL", { skip: server.skip }, () => {
  storeConformance({ name: "mysql with SKIP LOCKED", open: async () => harness({ tablePrefix: "a_" }) });
  storeConformance({
    name: "mysql without SKIP LOCKED",
    open: async () => harness({ tablePrefix: "b_", skipLocked: false }),
  });
});
