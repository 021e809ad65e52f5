import { describe } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { silentLogger } from "../../log.ts";
import type { Store, StoreFactory } from "../../store.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { redis } from "./index.ts";

function harness(factory: (clock: VirtualClock) => StoreFactory): ConformanceHarness {
  const clock = new VirtualClock();
  const made = factory(clock);
  return {
    async open(namespace = "conformance"): Promise<Store> {
      const store = await made.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}

const single = await testbed.redis();

describe("on a single server", { skip: single.skip }, () => {
  storeConformance({
    name: "redis",
    open: async () => harness((clock) => redis({ url: single.url, prefix: single.name, clock })),
  });
});

const cluster = await testbed.redisCluster();

describe("on a Cluster", { skip: cluster.skip }, () => {
  storeConformance({
    name: "redis cluster, one slot",
    open: async () => harness((clock) => redis({ url: cluster.url, prefix: `${cluster.name}-one`, clock })),
  });

  storeConformance({
    name: "redis cluster, three slots",
    open: async () =>
      harness((clock) => redis({ url: cluster.url, prefix: `${cluster.name}-three`, slots: 3, clock })),
  });
});
