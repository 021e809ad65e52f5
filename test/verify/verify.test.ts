import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deliveries } from "../../src/job.ts";
import { type VerifyOptions, type VerifyResult, verify } from "../../src/verify/run.ts";

const short: VerifyOptions = {
  store: null,
  deliveries,
  faults: [],
  nodes: 3,
  jobs: 300,
  durationMs: 2_000,
  seed: 1,
  leaseMs: 2_000,
  pollMs: 100,
  concurrency: 10,
};

function assertKept({ verdict }: VerifyResult): void {
  assert.deepEqual(verdict.violations, []);
  assert.ok(verdict.valid);
}

describe("real processes keep every promise on SQLite", () => {
  test("without faults each job runs exactly once, or as often as its script fails and once more", async () => {
    const result = await verify(short);
    assertKept(result);
    assert.equal(result.verdict.reruns.count, 0);
    const [, , effectivelyOnce] = result.verdict.figures;
    assert.equal(effectivelyOnce?.effects, effectivelyOnce?.succeeded);
  });

  test("killed, stopped and blocked, a little of each", async () => {
    const result = await verify({ ...short, faults: ["kill", "pause", "block"], durationMs: 5_000, seed: 2 });
    assertKept(result);
    assert.deepEqual(
      ["kill", "pause", "block"].filter(
        (kind) => !result.history.faults.some((fault) => fault.kind === kind),
      ),
      [],
      "each fault was there",
    );
  });

  test("with clocks that are off by minutes, and jump", async () => {
    assertKept(await verify({ ...short, faults: ["clock"], seed: 3 }));
  });
});
