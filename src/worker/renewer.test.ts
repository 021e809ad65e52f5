import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ExtendParams } from "../store/claims.ts";
import type { Store } from "../store/store.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Renewer } from "./renewer.ts";

describe("renewing leases", () => {
  test("a claim that another transaction has locked is asked for again soon, by itself, and is no loss", async () => {
    const clock = new VirtualClock();
    const asked: { readonly at: number; readonly ids: string[] }[] = [];
    const renewed: string[] = [];
    const stale: string[] = [];
    let locks = 2;
    const extend = async ({ claims }: ExtendParams) => {
      asked.push({ at: clock.monotonic(), ids: claims.map(({ id }) => id) });
      const isLocked = locks > 0;
      locks -= 1;
      return claims.map(({ id }) => ({
        outcome: isLocked && id === "b" ? ("locked" as const) : ("extended" as const),
        cancelRequested: false,
      }));
    };
    const start = clock.monotonic();
    const renewer = new Renewer({
      store: { extend } as unknown as Store,
      claimer: "n",
      leaseMs: 30_000,
      heartbeatMs: 10_000,
      clock,
      random: () => 1,
      held: () => ["a", "b", "c"].map((id) => ({ id, token: 1, timeoutAtMs: null })),
      mayRenew: () => true,
      onRenewed: (claims) => renewed.push(claims.map(({ id }) => id).join(",")),
      onCovered() {},
      onStale: (claims) => stale.push(...claims.map(({ id }) => id)),
      onCancel() {},
      onError: assert.fail,
    });
    renewer.start();
    await clock.advance(11_000);
    await renewer.stop();
    assert.deepEqual(
      asked.map(({ ids }) => ids.join(",")),
      ["a,b,c", "b", "b"],
    );
    assert.deepEqual(renewed, ["a,c", "", "b"]);
    assert.deepEqual(stale, []);
    assert.ok(asked.every(({ at }) => at - start < 11_000));
  });
});
