import assert from "node:assert/strict";
import { noFigures } from "../../history.ts";
import { slotOf } from "../../id.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { leaseMs, named } from "./claimer.ts";
import { type ConformanceTest, die, hour, newJob, type Scene, succeed } from "./scene.ts";
import { fire, firing, put, rule } from "./schedule-scene.ts";

/** Names that a pattern, a prefix, a separator, a quote or a collation could take for the given one, or for each other. */
function alike(name: string): string[] {
  const behind = ["%", "_", "*", ":0", "}", "\\", "'", '"', " ", "é", "e\u0301", "ss", "ß"];
  return [
    name,
    name.toUpperCase(),
    ...behind.map((piece) => `${name}${piece}`),
    `*${name}`,
    `{${name}}`,
    `[${name}]`,
    `${name}'); drop table escapement_jobs; --`,
    `${name}' .. redis.call('FLUSHALL') .. '`,
    `../${name}`,
  ];
}

const node = {
  id: "node",
  host: "h",
  pid: 1,
  version: "1",
  roles: ["worker"],
  queues: null,
  names: ["work"],
  concurrency: 1,
  active: 0,
  ttlMs: 1_000,
};

const everything = {
  succeededMs: 0,
  cancelledMs: 0,
  deadMs: 0,
  lostMs: 0,
  nodesMs: 0,
  occurrencesMs: 0,
  auditMs: 0,
  historyMs: { minute: 0, hour: 0 },
  limit: 1_000,
};
const all = { select: { filter: {}, limit: 1_000, cursor: null }, reason: "all of them" };
const ids = ["held", "dead", "waiting", "relayed"];

/** Some of everything that a namespace can hold, under the same names each time. */
async function furnish(scene: Scene, store: Store): Promise<void> {
  const claimer = scene.claimer("node", store);
  await store.enqueue({ jobs: [newJob("held"), newJob("dead")] });
  const claimed = await claimer.take();
  for (const job of claimed) {
    await store.report({
      claimer: "node",
      reports: [{ id: job.id, token: job.token, progress: "1", lines: ["hello"] }],
    });
    if (job.id === "dead") await claimer.finish(job, die);
  }
  await store.enqueue({
    jobs: [
      newJob("waiting", { tags: ["t"] }),
      newJob("relayed", { name: "routed", relayed: true, slot: slotOf("relayed") }),
    ],
  });
  await store.putNode(node);
  await store.configureQueue({ queue: "paused", paused: true });
  const now = (await store.health()).now;
  const schedule = await put(store, rule("s", now));
  await fire(store, firing(schedule, now));
  await store.acquirePartitions({ owner: "node", leaseMs, partitions: 3, want: 3 });
  const entries = [{ ...noFigures, agoMs: 2 * hour, queue: "default", name: "work", succeeded: 1 }];
  await store.recordHistory({ node: "node", sequence: 1, entries });
}

const always = { since: new Date(0), until: new Date("2100-01-01") };

/** Every answer that a namespace gives. */
async function portrait(store: Store): Promise<unknown> {
  const { jobs } = await store.list({ filter: {}, limit: 1_000, order: "oldest", cursor: null });
  const counts = await store.count({ filter: {}, by: ["state", "queue", "name"] });
  return {
    jobs: jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    got: await store.get({ ids }),
    counts: counts.map((row) => JSON.stringify(row)).sort(),
    trails: await Promise.all(
      jobs
        .map(({ id }) => id)
        .sort()
        .map((id) => store.trail({ id })),
    ),
    queues: await store.queues(),
    nodes: await store.nodes(),
    schedules: await store.schedules({ keys: null }),
    occurrences: await store.occurrences({
      key: "s",
      from: new Date(0),
      to: new Date("2100-01-01"),
      limit: 100,
    }),
    history: await store.history({ ...always, step: "hour", by: "name", limit: 100 }),
    depths: await store.depths(),
    usage: await store.usage({ queue: "default", concurrencyKey: "k", rateKey: "k" }),
    scanned: (
      await store.scan({ filter: {}, order: "oldest", limit: 1_000, lookAt: 10_000, cursor: null })
    ).jobs
      .map(({ id, state }) => `${id} ${state}`)
      .sort(),
    partitions: await store.partitions(),
    partitionDue: await store.partitionDue({ partition: 0, aheadMs: 0, limit: 100, after: null }),
  };
}

/** Whatever one namespace can do to what it holds. */
async function ravage(scene: Scene, store: Store): Promise<void> {
  await store.reap({ limit: 1_000 });
  await store.redrive(all);
  const claimer = scene.claimer("node", store);
  for (const job of await claimer.take()) await claimer.finish(job, succeed);
  for (const grant of await store.acquirePartitions({ owner: "node", leaseMs, partitions: 3, want: 3 })) {
    const name = ids.map((id) => ({ id, version: 1 }));
    const { partition, epoch } = grant;
    await store.checkpoint({
      owner: "node",
      partition,
      epoch,
      settled: [],
      mark: new Date(0),
      name,
      aheadMs: 0,
    });
  }
  await store.update({ id: "waiting", input: '"changed"', delayMs: hour });
  await store.cancel(all);
  await store.prune(everything);
  await store.configureQueue({ queue: "paused", paused: false });
  await store.configureQueue({ queue: "default", paused: true });
  await store.removeNode({ id: "node" });
  await store.removeSchedule({ key: "s" });
}

export function isolationTests(test: ConformanceTest): void {
  test("namespaces whose names look alike hold their own jobs, queues and schedules", async (scene) => {
    const names = [...new Set(alike(scene.namespace))];
    const stores = new Map<string, Store>();
    for (const name of names) {
      const store = await scene.openIn(name);
      stores.set(name, store);
      assert.deepEqual(await store.count({ filter: {}, by: [] }), [{ count: 0 }], `${name} is not empty`);
      const results = await store.enqueue({ jobs: [newJob("a", { input: JSON.stringify(name) })] });
      assert.equal(results[0]?.outcome, "added", `${name} knows the job of another`);
      await store.configureQueue({ queue: name.slice(0, 100), paused: true });
      await put(store, rule("s", null, { spec: JSON.stringify({ name }) }));
    }
    for (const [name, store] of stores) {
      const { jobs } = await store.list({ filter: {}, limit: 10, order: "oldest", cursor: null });
      const inputs = jobs.map(({ input }) => input);
      assert.deepEqual(inputs, [JSON.stringify(name)], name);
      assert.deepEqual(
        (await store.queues()).map(({ queue }) => queue),
        [name.slice(0, 100)],
      );
      assert.deepEqual(
        (await store.schedules({ keys: null })).map(({ spec }) => spec),
        [JSON.stringify({ name })],
      );
      assert.deepEqual(await scene.claimer("node", store).ids(), ["a"]);
    }
  });

  test("nothing that one namespace does changes an answer of another", async (scene) => {
    const other = await scene.openIn(`${scene.namespace}:0`);
    for (const store of [scene.store, other]) await furnish(scene, store);
    await scene.advance(2 * leaseMs);
    const before = [await portrait(scene.store), await portrait(other)] as const;
    await ravage(scene, other);
    assert.deepEqual(await portrait(scene.store), before[0]);
    assert.notDeepEqual(await portrait(other), before[1]);
    assert.deepEqual((await scene.reapAll()).sort(), ["held"]);
  });

  test(
    "limits, rates, unique keys and lanes of one namespace hold nobody up in another",
    async (scene) => {
      const other = await scene.openIn(`${scene.namespace}%`);
      const limits = [named("work", { concurrency: 1, rate: { limit: 1, perMs: hour } })];
      const jobs = ["a", "b"].map((id) =>
        newJob(id, { concurrencyKey: "k", rateKey: "r", unique: { key: id, forMs: null } }),
      );
      for (const store of [scene.store, other]) {
        await store.configureQueue({ queue: "default", concurrency: 1, rate: { limit: 1, perMs: hour } });
        const results = await store.enqueue({ jobs });
        assert.deepEqual(
          results.map(({ outcome }) => outcome),
          ["added", "added"],
        );
        assert.deepEqual(await scene.claimer("node", store).ids({ names: limits }), ["a"]);
        assert.deepEqual(await scene.claimer("node", store).ids({ names: limits }), []);
      }
    },
    { capability: "acrossSlots", because: "it has no limits and unique keys" },
  );

  test("a listener hears nothing of another namespace", async (scene) => {
    const other = await scene.openIn(`${scene.namespace}*`);
    const heard: Notice[] = [];
    await scene.store.subscribe((notice) => heard.push(notice));
    await other.enqueue({ jobs: [newJob("theirs", { queue: "their queue" })] });
    const claimer = scene.claimer("node", other);
    const job = await claimer.one();
    await other.cancel({ select: { ids: ["theirs"] }, reason: null });
    await claimer.finish(job, succeed);
    const isOurs = (notices: readonly Notice[]): boolean =>
      notices.some((notice) => notice.kind === "jobs" && (notice.queues?.includes("our queue") ?? false));
    await scene.noticesUntil(() => scene.add(newJob("ours", { queue: "our queue" })), isOurs);
    assert.doesNotMatch(JSON.stringify(heard), /their/);
  });
}
