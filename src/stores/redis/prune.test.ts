import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store/store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { harness, newPrefix } from "./test/harness.ts";

const server = await testbed.redis();
const kept = { cancelledMs: 0, deadMs: 0, lostMs: 0, nodesMs: 0, occurrencesMs: 0 };
const names = [{ name: "work", concurrency: null, rate: null }];

/** Adds, claims and finishes jobs, all in single calls, so that they end together. */
async function finishTogether(store: Store, sequence: number, ids: readonly string[]): Promise<void> {
  await store.enqueue({ jobs: ids.map((id) => newJob(id)) });
  const claim = { claimer: "c", sequence, leaseMs: 1_000, limit: 100, queues: null, names, alone: false };
  const { jobs } = await store.claim(claim);
  assert.equal(jobs.length, ids.length);
  const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
  await store.finish({ claimer: "c", finishes });
}

async function idsIn(store: Store): Promise<string[]> {
  const { jobs } = await store.list({
    filter: { states: ["succeeded"] },
    limit: 100,
    order: "oldest",
    cursor: null,
  });
  return jobs.map(({ id }) => id);
}

describe("jobs that succeeded together, on Redis", { skip: server.skip }, () => {
  test("are pruned in part where the limit says so, and listed until then", async () => {
    const { open } = harness({ url: server.url, prefix: newPrefix(server) });
    const store = await open();
    await finishTogether(store, 1, ["a", "b", "c", "d", "e"]);
    assert.deepEqual(await idsIn(store), ["a", "b", "c", "d", "e"]);
    const prune = { ...kept, succeededMs: 0, limit: 2 };
    assert.deepEqual(await store.prune(prune), { pruned: 2, more: true });
    assert.deepEqual(await idsIn(store), ["c", "d", "e"]);
    assert.deepEqual(await store.prune(prune), { pruned: 2, more: true });
    assert.deepEqual(await store.prune(prune), { pruned: 1, more: false });
    assert.deepEqual(await idsIn(store), []);
    await store.close();
  });

  test("one that was removed and has run again since is kept for as long as its new end says", async () => {
    const { open, advance } = harness({ url: server.url, prefix: newPrefix(server) });
    const store = await open();
    await finishTogether(store, 1, ["a", "b"]);
    await store.remove({ select: { ids: ["a"] }, reason: null });
    await advance(10_000);
    await finishTogether(store, 2, ["a"]);
    assert.deepEqual(await idsIn(store), ["b", "a"]);
    const prune = { ...kept, succeededMs: 5_000, limit: 100 };
    assert.deepEqual(await store.prune(prune), { pruned: 1, more: false });
    assert.deepEqual(await idsIn(store), ["a"]);
    await advance(10_000);
    assert.deepEqual(await store.prune(prune), { pruned: 1, more: false });
    assert.deepEqual(await idsIn(store), []);
    await store.close();
  });
});
