import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Delivery } from "../job.ts";
import type { PublishResult } from "../message/transport.ts";
import type { ClaimedJob } from "../store/claims.ts";
import { verdictOf, verdictOnTakeover } from "./verdict.ts";

const error = new Error("full");
const job = (delivery: Delivery, changes: Partial<ClaimedJob> = {}): ClaimedJob =>
  ({ id: "x", delivery, token: 1, cancelRequested: false, ...changes }) as ClaimedJob;
const kinds = (result: PublishResult) =>
  (["at-most-once", "at-least-once", "effectively-once"] as const).map(
    (delivery) => verdictOf(job(delivery), result, 0.5).kind,
  );

describe("what a broker's word means", () => {
  test("it is the table of the guarantees", () => {
    assert.deepEqual(kinds({ kind: "acknowledged" }), ["succeed", "succeed", "succeed"]);
    assert.deepEqual(kinds({ kind: "refused", error, permanent: false }), ["die", "rollback", "rollback"]);
    assert.deepEqual(kinds({ kind: "refused", error, permanent: true }), ["die", "die", "die"]);
    assert.deepEqual(kinds({ kind: "ambiguous", error }), ["lose", "rollback", "rollback"]);
  });

  test("each try waits longer, up to a minute, or as long as the receiver asks, up to an hour [D3]", () => {
    const delayMs = (token: number, retryAfterMs?: number): number => {
      const refusal = { kind: "refused", error, permanent: false } as const;
      const result = retryAfterMs === undefined ? refusal : { ...refusal, retryAfterMs };
      const outcome = verdictOf(job("at-least-once", { token }), result, 0.5);
      return outcome.kind === "rollback" ? outcome.delayMs : Number.NaN;
    };
    assert.deepEqual(
      [1, 2, 3, 7, 1_000].map((token) => delayMs(token)),
      [1_000, 2_000, 4_000, 60_000, 60_000],
    );
    assert.deepEqual([delayMs(1, 500), delayMs(1, 30_000), delayMs(1, 1e12)], [1_000, 30_000, 3_600_000]);
  });
});

test("what an earlier owner had named is published again, but never at-most-once, the cancelled and the unknown", () => {
  assert.equal(verdictOnTakeover(job("at-least-once"), true), null);
  assert.equal(verdictOnTakeover(job("at-most-once"), true)?.kind, "lose");
  assert.equal(verdictOnTakeover(job("at-most-once"), false)?.kind, "lose");
  assert.equal(verdictOnTakeover(job("at-least-once", { cancelRequested: true }), true)?.kind, "release");
  assert.equal(verdictOnTakeover(job("effectively-once"), false)?.kind, "release");
});
