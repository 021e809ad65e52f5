import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deliveries } from "../../../src/job.ts";
import { type VerifyOptions, type VerifyResult, verify } from "../../../src/proof/run.ts";
import { testbed } from "../../../testbed/index.ts";
import { openBroker } from "./own-broker.ts";

// A little of everything; `npm run proof` is the long form.

const short: Omit<VerifyOptions, "faults"> = {
  store: null,
  deliveries,
  nodes: 3,
  jobs: 300,
  durationMs: 5_000,
  seed: 1,
  leaseMs: 2_000,
  pollMs: 100,
  concurrency: 10,
};

function assertKept({ verdict }: VerifyResult): void {
  assert.deepEqual(verdict.violations, []);
  assert.ok((verdict.relay?.copies ?? 0) > 0, "something was published");
  // One that was cancelled while nobody knew of its publish may have taken effect, too.
  const [, , effectivelyOnce] = verdict.figures;
  assert.ok((effectivelyOnce?.effects ?? 0) >= (effectivelyOnce?.succeeded ?? 1), "effects were committed");
}

// A receiver answers when its handler has ended, and a busy machine makes it wait: nobody shall give it up for that.
const patient = { ...short, leaseMs: 6_000, to: { url: "http" } };

describe("relays keep every promise from SQLite to HTTP", () => {
  test("without faults each job is one message", async () => {
    const result = await verify({ ...patient, faults: [], durationMs: 2_000, jobs: 100 });
    assertKept(result);
    assert.equal(result.verdict.reruns.count, 0);
    assert.equal(result.verdict.relay?.publishes, result.verdict.relay?.copies);
  });

  test("the drill: publishes fail on purpose, and the writes before and after them [D3, D4, D5, D8]", async () => {
    const result = await verify({ ...patient, faults: ["publish", "kill"], seed: 2 });
    assertKept(result);
    const { drills, rollbacks } = result.verdict.relay ?? assert.fail("it has figures");
    assert.ok(drills.publish > 0, "the drill struck");
    assert.ok(rollbacks.refused > 0 && rollbacks.ambiguous > 0, "and was counted");
  });
});

const [redis, nats] = [await testbed.redis({ private: true }), await openBroker("nats")];

describe("relays keep every promise from Redis to NATS", { skip: redis.skip || nats.skip }, () => {
  test("killed, cut off from store, broker and both, and the leader of the stream killed [B3, D8]", async () => {
    await using _ = redis;
    await using place = nats;
    const faults = ["broker-restart", "broker", "both", "network", "kill", "publish"] as const;
    const result = await verify({ ...short, store: redis.url, to: place.broker, faults, seed: 3 });
    assertKept(result);
    assert.ok(result.history.faults.length > 0, "there were faults");
  });
});
