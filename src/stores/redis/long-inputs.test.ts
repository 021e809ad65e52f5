import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Redis } from "ioredis";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store/store.ts";
import { newJob, retry, succeed } from "../../testing/conformance/scene.ts";
import { harness, newPrefix } from "./test/harness.ts";

const server = await testbed.redis();
const names = [{ name: "work", concurrency: null, rate: null }];
const ask = { claimer: "c", leaseMs: 1_000, limit: 10, queues: null, names, alone: false };

/** JSON of a length that is around, and far from, where inputs are kept apart. */
const inputOf = (letter: string, length: number): string => JSON.stringify(letter.repeat(length - 2));
const lengths = { a: 10, b: 999, c: 1_000, d: 1_001, e: 50_000, f: 11 };
const inputs: Record<string, string> = Object.fromEntries(
  Object.entries(lengths).map(([id, length]) => [id, inputOf(id, length)]),
);

async function opened(): Promise<{ store: Store; prefix: string }> {
  const prefix = newPrefix(server);
  const store = await harness({ url: server.url, prefix }).open();
  after(() => store.close());
  await store.enqueue({ jobs: Object.entries(inputs).map(([id, input]) => newJob(id, { input })) });
  return { store, prefix };
}

async function kept(store: Store): Promise<unknown> {
  const jobs = await store.get({ ids: Object.keys(inputs) });
  return Object.fromEntries(jobs.map((job) => [job?.id, job?.input]));
}

describe("inputs of Redis jobs, short and long", { skip: server.skip }, () => {
  test("come back as they were, by a claim, a repeated one, a retry and a question", async () => {
    const { store } = await opened();
    assert.deepEqual(await kept(store), inputs);
    const first = await store.claim({ ...ask, sequence: 1 });
    const again = await store.claim({ ...ask, sequence: 1 });
    for (const { jobs } of [first, again])
      assert.deepEqual(Object.fromEntries(jobs.map(({ id, input }) => [id, input])), inputs);
    const finishes = first.jobs.map(({ id, token }) => ({ id, token, outcome: retry(0) }));
    const { claimed } = await store.step({ finishes, claim: { ...ask, sequence: 2 } });
    assert.deepEqual(Object.fromEntries(claimed.jobs.map(({ id, input }) => [id, input])), inputs);
    assert.deepEqual(await kept(store), inputs);
  });

  test("change from short to long and back", async () => {
    const { store } = await opened();
    for (const length of [5_000, 20, 1_001, 1_000]) {
      const input = inputOf("x", length);
      assert.equal((await store.update({ id: "c", input })).outcome, "updated");
      assert.deepEqual(await kept(store), { ...inputs, c: input });
    }
  });

  test("go to the right jobs where one with a long input is cut short", async () => {
    const { store, prefix } = await opened();
    const client = new Redis(server.url);
    const [key = ""] = (await client.keys(`*${prefix}:*jobs`)).filter((one) => one.endsWith("}:jobs"));
    const rest = await client.hgetBuffer(key, "d");
    assert(rest !== null);
    await client.hset(key, "d", rest.subarray(0, rest.length - 10));
    client.disconnect();
    const { jobs } = await store.claim({ ...ask, sequence: 1 });
    const { d: _, ...others } = inputs;
    assert.deepEqual(Object.fromEntries(jobs.map(({ id, input }) => [id, input])), others);
    const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
    const finished = await store.finish({ claimer: "c", finishes });
    assert(finished.every(({ outcome }) => outcome === "written"));
  });
});
