import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { everyNthOnVariants, isFull } from "../../../test/full.ts";
import { silentLogger } from "../../log.ts";
import type { StoreFactory } from "../../store/opening.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { storeConformance } from "../../testing/conformance/suite.ts";
import { compareStores, seedsToRun } from "../../testing/random/compare.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { memory } from "../memory/index.ts";
import { sqlite } from "./index.ts";

function harness(factory: StoreFactory, close: () => void = () => undefined): ConformanceHarness {
  const clock = new VirtualClock();
  return {
    async open(namespace = "conformance") {
      const store = await factory.open({ namespace, clock, log: silentLogger });
      await store.migrate();
      return store;
    },
    advance: (ms) => clock.advance(ms),
    close: async () => close(),
  };
}

async function inFile(): Promise<ConformanceHarness> {
  const folder = mkdtempSync(join(tmpdir(), "escapement-"));
  return harness(sqlite(join(folder, "jobs.db")), () => rmSync(folder, { recursive: true }));
}

const inMemory = async (): Promise<ConformanceHarness> => harness(sqlite(":memory:"));

storeConformance({ name: "sqlite in a file", open: inFile });
storeConformance({ name: "sqlite in memory", open: inMemory, everyNth: everyNthOnVariants });

const against = (open: () => Promise<ConformanceHarness>, seed: number, operations: number): Promise<void> =>
  compareStores({ seed, operations, open: [async () => harness(memory()), open] });

test("sqlite answers as memory does, over many seeds", async () => {
  for (const seed of seedsToRun(isFull ? 150 : 50)) await against(inMemory, seed, 120);
});

test("sqlite answers as memory does, over long runs", async () => {
  for (const seed of seedsToRun(isFull ? 5 : 2)) await against(inMemory, seed, 600);
});

test("sqlite in a file answers as memory does", () => against(inFile, 4_711, 150));
