import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../../log.ts";
import type { Store, StoreFactory } from "../../store.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { sqlite } from "./index.ts";

function harness(factory: StoreFactory, close: () => void): ConformanceHarness {
  const clock = new VirtualClock();
  return {
    async open(namespace = "conformance"): Promise<Store> {
      const store = await factory.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close: async () => close(),
  };
}

storeConformance({
  name: "sqlite in a file",
  async open() {
    const folder = mkdtempSync(join(tmpdir(), "escapement-"));
    return harness(sqlite(join(folder, "jobs.db")), () => rmSync(folder, { recursive: true }));
  },
});

storeConformance({
  name: "sqlite in memory",
  open: async () => harness(sqlite(":memory:"), () => undefined),
});
