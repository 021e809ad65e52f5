import { describe, test } from "node:test";
import { isFull } from "../../../test/full.ts";
import { testbed } from "../../../testbed/index.ts";
import { silentLogger } from "../../log.ts";
import type { ConformanceHarness } from "../../testing/conformance/harness.ts";
import { compareStores, seedsToRun } from "../../testing/random/compare.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { memory } from "../memory/index.ts";
import { harness, newPrefix } from "./test/harness.ts";

const server = await testbed.redis();

async function openMemory(): Promise<ConformanceHarness> {
  const clock = new VirtualClock();
  const shared = memory();
  return {
    open: (namespace = "random") => shared.open({ namespace, clock, log: silentLogger }),
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
}

const openRedis = async (): Promise<ConformanceHarness> =>
  harness({ url: server.url, prefix: newPrefix(server) });

/** How many short runs there are. */
const shortRuns = isFull ? 100 : 15;

describe("Redis beside memory", { skip: server.skip }, () => {
  for (const seed of seedsToRun(isFull ? 10 : 4)) {
    test(`random operations have the same answers, seed ${seed}`, () =>
      compareStores({ seed, operations: 300, open: [openMemory, openRedis] }));
  }

  test("many short runs of random operations have the same answers", async () => {
    for (let seed = 1_000; seed < 1_000 + shortRuns; seed += 1) {
      await compareStores({ seed, operations: 80, open: [openMemory, openRedis] });
    }
  });
});
