import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { deliveries } from "../../../src/job.ts";
import { type VerifyOptions, type VerifyResult, verify } from "../../../src/proof/run.ts";
import { newFolder } from "../../behaviour/stores.ts";

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
    // How many there is time for depends on how long a killed node takes to come back.
    assert.ok(result.history.faults.length > 0, "there were faults");
  });

  test("with clocks that are off by minutes, and jump", async () => {
    assertKept(await verify({ ...short, faults: ["clock"], seed: 3 }));
  });
});

describe("escapement verify", () => {
  test("says in a few lines what was kept, and writes a file for programs and a page for people", () => {
    const folder = newFolder();
    const [json, page] = [join(folder, "verify.json"), join(folder, "verify.html")];
    const flags = "--faults kill --nodes 2 --jobs 60 --duration 2s --seed 5".split(" ");
    const main = join(import.meta.dirname, "../../../src/cli/main.ts");
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [main, "verify", ...flags, "--out", json, "--report", page],
      { encoding: "utf8", timeout: 60_000 },
    );
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /^KEPT {2}SQLite/);
    const data = JSON.parse(readFileSync(json, "utf8"));
    assert.deepEqual([data.valid, data.seed, data.violations], [true, 5, []]);
    assert.match(readFileSync(page, "utf8"), /<svg .*handlers started.*at-least-once/s);
  });

  test("refuses what it cannot do before it starts anything", () => {
    const main = join(import.meta.dirname, "../../../src/cli/main.ts");
    for (const flags of [
      ["--faults", "fire"],
      ["--store", "memory:"],
      ["--nodes", "none"],
      ["--to", "memory:"],
      ["--faults", "publish"],
      ["--to", "http", "--faults", "network"],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, [main, "verify", ...flags], {
        encoding: "utf8",
      });
      assert.equal(status, 2);
      assert.match(stderr, /expected .* got .*\[invalid-option\]/);
    }
  });
});
