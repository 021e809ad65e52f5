import { test } from "node:test";
import { silentLogger } from "../../log.ts";
import { memory } from "../../stores/memory/index.ts";
import type { ConformanceHarness } from "../conformance/harness.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { compareStores, seedsToRun } from "./compare.ts";

async function openMemory(): Promise<ConformanceHarness> {
  const clock = new VirtualClock();
  const shared = memory();
  return {
    open: (namespace = "random") => shared.open({ namespace, clock, log: silentLogger }),
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}

for (const seed of seedsToRun(4)) {
  test(`two memory stores answer alike, seed ${seed}`, () =>
    compareStores({ seed, operations: 400, open: [openMemory, openMemory] }));
}
