import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { silentLogger } from "../../log.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { compareStores, seedsToRun } from "../../testing/random/compare.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { memory } from "../memory/index.ts";
import { harness, newSchema } from "./test/harness.ts";

const server = await testbed.postgres();
const schema = newSchema();

async function openMemory(): Promise<ConformanceHarness> {
  const clock = new VirtualClock();
  const shared = memory();
  return {
    open: (namespace = "random") => shared.open({ namespace, clock, log: silentLogger }),
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}

/** All seeds share one schema, each with a namespace of its own. */
async function openPostgres(seed: number): Promise<ConformanceHarness> {
  const { open, ...rest } = harness({ url: server.url, schema });
  return { ...rest, open: (namespace = "random") => open(`${namespace} ${seed}`) };
}

/** So much real time is spent on short runs at the most. */
const budgetMs = 8_000;

describe("Postgres beside memory", { skip: server.skip }, () => {
  for (const seed of seedsToRun(12)) {
    test(`random operations have the same answers, seed ${seed}`, () =>
      compareStores({ seed, operations: 200, open: [openMemory, () => openPostgres(seed)] }));
  }

  test("many short runs of random operations have the same answers", async () => {
    const until = performance.now() + budgetMs;
    for (let seed = 1_000; seed < 1_300 && performance.now() < until; seed += 1) {
      await compareStores({ seed, operations: 60, open: [openMemory, () => openPostgres(seed)] });
    }
  });
});
