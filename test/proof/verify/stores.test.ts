import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deliveries } from "../../../src/job.ts";
import { verify } from "../../../src/proof/run.ts";
import { testbed } from "../../../testbed/index.ts";

// A little of everything on each server; `npm run proof` is the long form.

for (const name of ["postgres", "mysql", "redis"] as const) {
  const server = await testbed[name]({ private: true });

  describe(`real processes keep every promise on ${name}`, { skip: server.skip }, () => {
    test("killed, stopped, cut off and their server restarted [K6, K11]", async () => {
      await using _ = server;
      const { verdict, history } = await verify({
        store: server.url,
        deliveries,
        faults: ["restart", "kill", "network", "pause"],
        nodes: 3,
        jobs: 300,
        durationMs: 6_000,
        seed: 1,
        leaseMs: 3_000,
        pollMs: 100,
        concurrency: 10,
        restart: async (abruptly) => {
          if (abruptly) await server.kill();
          await server.restart();
        },
      });
      assert.deepEqual(verdict.violations, []);
      assert.ok(history.faults.length > 0, "there were faults");
      const [, , effectivelyOnce] = verdict.figures;
      assert.ok((effectivelyOnce?.effects ?? 0) > 0, "effects were committed");
    });
  });
}
