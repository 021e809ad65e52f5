import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Redis } from "ioredis";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store/store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { harness, newPrefix } from "./test/harness.ts";

const server = await testbed.redis();

const names = [{ name: "work", concurrency: 2, rate: null }];
const ask = { claimer: "c", leaseMs: 1_000, limit: 10, queues: null, names, alone: false };

/** Three jobs, the middle one damaged by somebody else. */
async function damaged(
  damage: (record: Buffer) => Buffer,
  changes: Parameters<typeof newJob>[1],
): Promise<{ store: Store; advance: (ms: number) => Promise<void>; prefix: string }> {
  const prefix = newPrefix(server);
  const { open, advance } = harness({ url: server.url, prefix });
  const store = await open();
  after(() => store.close());
  await store.enqueue({ jobs: ["a", "victim", "z"].map((id) => newJob(id, { input: "1", ...changes })) });
  const client = new Redis(server.url);
  const [key = ""] = (await client.keys(`*${prefix}:*jobs`)).filter((one) => one.endsWith("}:jobs"));
  const record = await client.hgetBuffer(key, "victim");
  assert(record !== null);
  await client.hset(key, "victim", damage(record));
  client.disconnect();
  return { store, advance, prefix };
}

/** Does something to a key that somebody else may do. */
async function meddle(prefix: string, word: string, act: (client: Redis, key: string) => unknown) {
  const client = new Redis(server.url);
  const [key = ""] = (await client.keys(`*${prefix}:*`)).filter((one) => one.endsWith(`}:${word}`));
  assert.notEqual(key, "", `there is no key ${word}`);
  await act(client, key);
  client.disconnect();
}

const cutShort = (record: Buffer): Buffer => record.subarray(0, 10);

/** The last part of a record before its input is JSON, and has the last brace. */
function garble(record: Buffer): Buffer {
  const broken = Buffer.from(record);
  broken[record.lastIndexOf("}")] = 0x7b;
  return broken;
}

describe("records of jobs that something else has written to", { skip: server.skip }, () => {
  for (const changes of [
    { tags: ["t"] },
    { tags: ["t"], concurrencyKey: "work k" },
    { tags: ["t"], schedule: "s" },
  ]) {
    const what = JSON.stringify(changes);

    test(`the rare part is no JSON: its neighbours and itself are claimed and ended (${what})`, async () => {
      const { store } = await damaged(garble, changes);
      const { jobs } = await store.claim({ ...ask, sequence: 1 });
      assert.ok(jobs.some(({ id }) => id === "a"));
      const victim = (await store.get({ ids: ["victim"] }))[0];
      assert.ok(victim?.unreadable?.includes("schedule"));
      const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
      const finished = await store.finish({ claimer: "c", finishes });
      assert.ok(finished.every(({ outcome }) => outcome === "written"));
      const { jobs: later } = await store.claim({ ...ask, sequence: 2 });
      const ids = [...jobs, ...later].map(({ id }) => id);
      assert.deepEqual(ids.toSorted(), ["a", "victim", "z"]);
      const { jobs: listed } = await store.list({ filter: {}, limit: 10, order: "oldest", cursor: null });
      assert.equal(listed.length, 3);
    });

    for (const bytes of [0, 10, 60, 100, 130]) {
      test(`cut to ${bytes} bytes: its neighbours are claimed, ended and listed (${what})`, async () => {
        const { store, advance } = await damaged((record) => record.subarray(0, bytes), changes);
        const first = await store.claim({ ...ask, sequence: 1 });
        const finishes = first.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
        await store.finish({ claimer: "c", finishes });
        const second = await store.claim({ ...ask, sequence: 2 });
        const ids = [...first.jobs, ...second.jobs].map(({ id }) => id).filter((id) => id !== "victim");
        assert.deepEqual(ids.toSorted(), ["a", "z"]);
        await advance(5_000);
        await store.reap({ limit: 10 });
        const [, victim] = await store.get({ ids: ["a", "victim", "z"] });
        // With 130 bytes only the input may be missing, which is for the worker to find.
        if (bytes < 130 || victim?.state !== "succeeded") {
          assert.equal(victim?.state, "dead");
          assert.match(victim.reason ?? "", /^unreadable: its record/);
        }
        const { jobs: listed } = await store.list({ filter: {}, limit: 10, order: "oldest", cursor: null });
        assert.deepEqual(listed.map(({ id }) => id).toSorted(), ["a", "victim", "z"]);
      });
    }
  }

  test("a record that is cut short is told of by the next reap and by health, and counted as dead", async () => {
    const { store } = await damaged(cutShort, {});
    assert.deepEqual(
      (await store.health()).problems.filter((problem) => problem.includes("cannot be read")),
      [],
    );
    await store.claim({ ...ask, sequence: 1 });
    const { reaped } = await store.reap({ limit: 10 });
    assert.deepEqual(
      reaped.map(({ id, state, name }) => ({ id, state, name })),
      [{ id: "victim", state: "dead", name: "work" }],
    );
    assert.match(reaped[0]?.reason ?? "", /^unreadable/);
    assert.deepEqual((await store.reap({ limit: 10 })).reaped, []);
    assert.ok((await store.health()).problems.some((problem) => /^1 job record .*"victim"/.test(problem)));
    const counts = await store.count({ filter: {}, by: ["state"] });
    assert.deepEqual(
      counts.map(({ state, count }) => [state, count]),
      [
        ["active", 2],
        ["dead", 1],
      ],
    );
  });

  test("the id of a record that is cut short stays taken until somebody deletes it", async () => {
    const { store } = await damaged(cutShort, {});
    const [again] = await store.enqueue({ jobs: [newJob("victim")] });
    assert.equal(again?.outcome, "existing");
    const removed = await store.remove({ select: { ids: ["victim"] }, reason: null });
    assert.deepEqual(removed.results, [{ id: "victim", outcome: "deleted" }]);
    assert.deepEqual(
      (await store.health()).problems.filter((problem) => problem.includes("cannot be read")),
      [],
    );
    const [anew] = await store.enqueue({ jobs: [newJob("victim")] });
    assert.equal(anew?.outcome, "added");
    const { jobs } = await store.claim({ ...ask, sequence: 1 });
    assert.ok(jobs.some(({ id }) => id === "victim"));
  });

  test("those that wait for a job whose record is cut short are cancelled with that reason", async () => {
    const { store, prefix } = await damaged((record) => record, {});
    await store.enqueue({ jobs: [newJob("child", { after: ["victim"] })] });
    await meddle(prefix, "jobs", (client, key) => client.hset(key, "victim", "x"));
    await store.claim({ ...ask, sequence: 1 });
    const [child] = await store.get({ ids: ["child"] });
    assert.equal(child?.state, "cancelled");
    assert.equal(child.reason, "its parent victim is dead");
  });

  test("a relay takes over beside a named job whose record is cut short, and publishes what is due beside another", async () => {
    const { store, advance, prefix } = await damaged((record) => record, { relayed: true, slot: 3 });
    const own = { owner: "r", leaseMs: 1_000, partitions: 1, want: 1 };
    const [grant] = await store.acquirePartitions(own);
    assert(grant !== undefined);
    const hold = { owner: "r", partition: 0, epoch: grant.epoch, settled: [], mark: null, aheadMs: 0 };
    await store.checkpoint({ ...hold, name: [{ id: "a", version: 1 }] });
    await meddle(prefix, "jobs", async (client, key) => {
      await client.hset(key, "a", "x", "victim", "");
    });
    await advance(2_000);
    const [taken] = await store.acquirePartitions({ ...own, owner: "s" });
    assert.deepEqual(taken?.named, []);
    const due = await store.partitionDue({ partition: 0, aheadMs: 0, limit: 10, after: null });
    assert.deepEqual(
      due.jobs.map(({ id }) => id),
      ["z"],
    );
    for (const job of await store.get({ ids: ["a", "victim"] })) assert.equal(job?.state, "dead");
    assert.equal((await store.reap({ limit: 10 })).reaped.length, 2);
  });

  for (const word of ["leases", "counts", "claimers", "active", "names:work", "queues", "nodes", "windows"])
    test(`the key ${word} of another type is set aside and told of, and jobs are claimed and ended`, async () => {
      const { store, prefix } = await damaged((record) => record, {});
      const first = await store.claim({ ...ask, limit: 1, sequence: 1 });
      await store.configureQueue({ queue: "default", concurrency: 100, rate: { limit: 100, perMs: 1_000 } });
      await meddle(prefix, "meta", async (client, key) => {
        const other = `${key.slice(0, -4)}${word}`;
        await client.del(other);
        await client.set(other, "x");
      });
      const finishes = first.jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
      await store.finish({ claimer: "c", finishes });
      await store.enqueue({ jobs: [newJob("later")] });
      const { jobs } = await store.claim({ ...ask, sequence: 2 });
      assert.ok(jobs.some(({ id }) => id === "later"));
      await store.nodes();
      await store.prune({
        ...{ succeededMs: 1e9, cancelledMs: 1e9, deadMs: 1e9, lostMs: 1e9, nodesMs: 1e9, occurrencesMs: 1e9 },
        limit: 10,
      });
      assert.ok((await store.health()).problems.some((problem) => problem.includes(JSON.stringify(word))));
    });
});
