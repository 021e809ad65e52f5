import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

const second = 1_000;

onEveryStore("a job one crash short of poison", (bed) => {
  test("runs alone: what comes meanwhile waits until it has ended", async () => {
    const clock = new VirtualClock();
    const store = bed.store();
    const started: string[] = [];
    const end = Promise.withResolvers<void>();
    const fragile = defineJob<null>({
      name: "fragile",
      maxCrashes: 2,
      run: () => {
        started.push("fragile");
        return end.promise;
      },
    });
    const plain = defineJob<null>({ name: "plain", run: () => void started.push("plain") });
    const app = new TestEscapement({ store, jobs: [fragile, plain], log: silentLogger }, clock);
    await app.enqueue(fragile, null, { id: "x" });
    const handle = await store.open({ namespace: "default", clock, log: silentLogger });
    // A worker that took it and was never heard of again.
    const names = [{ name: "fragile", concurrency: null, rate: null }];
    const ask = {
      claimer: "dead",
      sequence: 1,
      leaseMs: second,
      limit: 1,
      queues: null,
      names,
      alone: false,
    };
    assert.equal((await handle.claim(ask)).jobs.length, 1);
    await clock.advance(2 * second);
    assert.equal((await handle.reap({ limit: 1 })).reaped.length, 1);
    await app.start();
    await clock.advance(5 * second);
    assert.deepEqual(started, ["fragile"]);
    await app.enqueue(plain, null);
    await clock.advance(20 * second);
    assert.deepEqual(started, ["fragile"]);
    end.resolve();
    await clock.advance(20 * second);
    assert.deepEqual(started, ["fragile", "plain"]);
    await app[Symbol.asyncDispose]();
    await handle.close();
  });
});
