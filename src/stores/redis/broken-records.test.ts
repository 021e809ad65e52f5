import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Redis } from "ioredis";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { harness, newPrefix } from "./test/harness.ts";

const server = await testbed.redis();

const names = [{ name: "work", concurrency: 2, rate: null }];
const ask = { claimer: "c", leaseMs: 1_000, limit: 10, queues: null, names, alone: false };

/** Three jobs, the middle one damaged by somebody else. */
async function damaged(
  damage: (record: Buffer) => Buffer,
  changes: Parameters<typeof newJob>[1],
): Promise<{ store: Store; advance: (ms: number) => Promise<void> }> {
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
  return { store, advance };
}

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
        await store.get({ ids: ["a", "victim", "z"] });
        const { jobs: listed } = await store.list({ filter: {}, limit: 10, order: "oldest", cursor: null });
        assert.ok(listed.length >= 2);
      });
    }
  }
});
