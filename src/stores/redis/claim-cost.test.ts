import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { ClaimName } from "../../store/claims.ts";
import type { NewJob } from "../../store/jobs.ts";
import type { Store } from "../../store/store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { admin } from "./test/admin.ts";
import { openStore } from "./test/harness.ts";

const server = await testbed.redis();

/** How many jobs wait; `ESCAPEMENT_BACKLOG=1000000` shows a million. */
const backlog = Number(process.env["ESCAPEMENT_BACKLOG"] ?? 20_000);
const names: readonly ClaimName[] = [
  { name: "work", concurrency: 2, rate: null },
  { name: "other", concurrency: null, rate: { limit: 1, perMs: 3_600_000 } },
];

describe("what a claim costs on Redis", { skip: server.skip }, () => {
  test("backlogs for later, of other names, of full keys, of paused queues and of finished jobs cost a claim nothing [A2]", async () => {
    await using own = await testbed.redis({ private: true });
    await using person = await admin(own.url);
    await person.call("CONFIG", "SET", "appendonly", "no");
    const store = await openStore(
      { url: own.url },
      { namespace: "n", clock: systemClock, log: silentLogger },
    );
    const commandsOfClaim = claimCounter(store, person);
    const before = await commandsOfClaim("small");
    await fill(store, "later", { delayMs: 3_600_000 });
    await fill(store, "prioritised", { delayMs: 3_600_000, priority: 7 });
    await fill(store, "unknown", { name: "nobody runs this" });
    await store.configureQueue({ queue: "paused", paused: true });
    await fill(store, "paused", { queue: "paused" });
    await fill(store, "keyed", { concurrencyKey: "k" });
    await fill(store, "rated", { name: "other", rateKey: "r" });
    await finishMany(store);
    // The first claim after it puts things where they belong; the ones after that are what counts.
    await commandsOfClaim("settling");
    const after = await commandsOfClaim("large");
    assert(
      after <= before + 40,
      `a claim took ${before} commands with nothing else there, and ${after} with backlogs of ${backlog}`,
    );
    await store.close();
  });
});

async function fill(store: Store, prefix: string, changes: Partial<NewJob>): Promise<void> {
  for (let start = 0; start < backlog; start += 1_000) {
    await store.enqueue({
      jobs: Array.from({ length: 1_000 }, (_, n) => newJob(`${prefix}-${start + n}`, changes)),
    });
  }
}

/** As many jobs that are done. */
async function finishMany(store: Store): Promise<void> {
  await fill(store, "done", { name: "done" });
  const claim = { claimer: "d", leaseMs: 60_000, limit: 1_000, queues: null, alone: false };
  const done = [{ name: "done", concurrency: null, rate: null }];
  for (let sequence = 1; sequence <= backlog / 1_000; sequence += 1) {
    const { jobs } = await store.claim({ ...claim, sequence, names: done });
    const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
    await store.finish({ claimer: "d", finishes });
  }
}

/** Adds ten jobs, claims and finishes them, and tells how many commands the claim's script made. */
function claimCounter(store: Store, person: Awaited<ReturnType<typeof admin>>) {
  let sequence = 0;
  return async (prefix: string): Promise<number> => {
    const jobs = Array.from({ length: 10 }, (_, n) => newJob(`${prefix} ${n}`, { priority: 9 }));
    await store.enqueue({ jobs });
    sequence += 1;
    const claim = { claimer: "c", sequence, leaseMs: 60_000, limit: 10, queues: null, names, alone: false };
    await person.call("CONFIG", "RESETSTAT");
    const claimed = await store.claim(claim);
    const stats = String(await person.call("INFO", "commandstats"));
    assert.deepEqual(
      claimed.jobs.map(({ id }) => id),
      jobs.map(({ id }) => id),
    );
    const finishes = claimed.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
    await store.finish({ claimer: "c", finishes });
    const calls = [...stats.matchAll(/cmdstat_\w+:calls=(\d+)/g)].map(([, count]) => Number(count));
    return calls.reduce((sum, count) => sum + count, 0);
  };
}
