import assert from "node:assert/strict";
import { test } from "node:test";
import type { AnyDefinition } from "../../src/definition.ts";
import { EscapementError } from "../../src/errors.ts";
import { type BulkProgress, defineJob, type HandlerContext, Operations } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { findOldestDue } from "../../src/operations/oldest-due.ts";
import { findWrongCounts } from "../../src/operations/recount.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { FaultyStore } from "./faulty.ts";
import { type Bed, onEveryStore } from "./stores.ts";

const ann = { actor: "ann", reason: "because" };

const flaky = defineJob<number>({
  name: "flaky",
  retry: { attempts: 1 },
  run: ({ input }: HandlerContext<number>) => {
    throw new RangeError(input % 2 === 0 ? `no row ${input}` : `timeout after ${input} ms`);
  },
});
const plain = defineJob<number>({ name: "plain", queue: "q1", run: () => {} });
const jobs = [flaky, plain];

/** An app with dead jobs, six of one kind and six of another, and jobs that wait. */
async function furnish(
  bed: Bed,
  store = bed.store(),
  more: readonly AnyDefinition[] = [],
): Promise<TestEscapement> {
  const app = await bed.app({ store, jobs: [...jobs, ...more], log: silentLogger });
  await app.enqueueMany(
    flaky,
    Array.from({ length: 12 }, (_, n) => ({ input: n, id: `f${n}`, tags: ["t"] })),
  );
  await app.enqueueMany(
    plain,
    Array.from({ length: 5 }, (_, n) => ({ input: n, id: `p${n}`, delay: "1h" as const })),
  );
  await app.runUntilIdle();
  return app;
}

/** Nobody here runs it. */
const later = defineJob<number>({ name: "later" });

onEveryStore("operations", (bed) => {
  test("the counts that are kept are found to be those of the jobs", async () => {
    await using app = await furnish(bed);
    await app.cancel((await app.list({ states: ["waiting"] }, { limit: 1 })).jobs.map(({ id }) => id));
    await app.redrive("f0");
    await app.delete("f1");
    assert((await app.count()) > 0);
    assert.deepEqual(await findWrongCounts(app), []);
  });

  test("reading: pages of jobs, one job's story, queues and failures by what went wrong", async () => {
    const ended = defineJob<null>({ name: "ended", queue: "ended", run: () => {} });
    const defined = defineJob<null>({ name: "defined", queue: "defined" });
    const store = bed.store();
    const emptied = await bed.app({ store, jobs: [ended], log: silentLogger });
    await emptied.enqueue(ended, null);
    await emptied.runUntilIdle();
    await emptied[Symbol.asyncDispose]();
    await using app = await furnish(bed, store, [defined]);
    await using server = new TestEscapement({ store, jobs, log: silentLogger }, app.clock);
    await server.start({ roles: ["worker"], queues: ["served"] });
    const operations = new Operations(app);
    const first = await operations.jobs(
      { states: ["dead"], error: "TIMEOUT" },
      { limit: 4, order: "oldest" },
    );
    assert.deepEqual(
      first.jobs.map(({ id, error }) => [id, error?.message]),
      ["f1", "f3", "f5", "f7"].map((id) => [id, `timeout after ${id.slice(1)} ms`]),
    );
    const rest = await operations.jobs(
      { states: ["dead"], error: "TIMEOUT" },
      { order: "oldest", cursor: first.cursor },
    );
    assert.deepEqual([rest.jobs.map(({ id }) => id), rest.cursor], [["f9", "f11"], null]);

    const { groups, count, isPartial } = await operations.failures();
    assert.deepEqual([count, isPartial], [12, false]);
    assert.deepEqual(
      groups.map(({ shape, name, state, count: many }) => [shape, name, state, many]).toSorted(),
      [
        ["RangeError: no row <n>", "flaky", "dead", 6],
        ["RangeError: timeout after <n> ms", "flaky", "dead", 6],
      ],
    );
    for (const { spark, count: many } of groups)
      assert.equal(
        spark.reduce((sum, one) => sum + one, 0),
        many,
        "a spark has each of its group",
      );
    const timeouts = groups.find(({ shape }) => shape.includes("timeout"));
    const alike = await operations.jobs({ states: ["dead"], fingerprint: timeouts?.fingerprint ?? "" });
    assert.equal(alike.jobs.length, 6);
    assert(alike.jobs.every(({ error }) => error?.message.startsWith("timeout")));
    assert((await operations.failures({}, 5)).isPartial, "a part says that it is one");

    const story = await operations.job("f1");
    assert.deepEqual([story?.job.state, story?.trail.length, story?.diagnosis?.causes], ["dead", 1, []]);
    assert.equal(await operations.job("nobody"), null);
    await operations.pauseQueue("empty", ann);
    assert.deepEqual(
      (await operations.queues()).map(({ queue, due, later, paused, oldestDueMs }) => [
        queue,
        due,
        later,
        paused,
        oldestDueMs,
      ]),
      [
        ["default", 0, 0, false, null],
        ["defined", 0, 0, false, null],
        ["empty", 0, 0, true, null],
        ["ended", 0, 0, false, null],
        ["q1", 0, 5, false, null],
        ["served", 0, 0, false, null],
      ],
    );
    const overview = await operations.overview();
    assert.equal(overview.nodes.length, 2);
    assert(overview.queues.some(({ queue }) => queue === "ended"));
    assert.equal(overview.counts.find(({ state }) => state === "dead")?.count, 12);
  });

  test("what somebody does stands in the job's story and in the audit log, with who and why [K12]", async () => {
    await using app = await furnish(bed);
    const operations = new Operations(app);
    const { id } = await operations.enqueue("plain", 7, { delay: "1h" }, ann);
    await operations.edit(id, { priority: 3 }, ann);
    await operations.runNow(id, { actor: "bob" });
    const texts = (await app.trail(id)).filter(({ kind }) => kind === "noted").map(({ text }) => text);
    assert.deepEqual(texts, [
      "enqueued by ann: because",
      "edited (priority) by ann: because",
      "made due by bob",
    ]);
    assert.deepEqual(await operations.cancel(["p1", "nobody"], ann), { cancelled: 1, unknown: 1 });
    assert.equal((await app.get("p1"))?.reason, "by ann: because");
    assert.deepEqual(await operations.redrive(["f1"], ann), { redriven: 1 });
    assert.match(JSON.stringify(await app.trail("f1")), /"redriven".*"by ann: because"/);
    assert.deepEqual(await operations.delete(["f2"], ann), { deleted: 1 });
    await operations.limitQueue("q1", { concurrency: 2 }, ann);
    await operations.resumeQueue("q1", ann);
    await app.schedule("nightly", { cron: "0 3 * * *" }, plain, 1);
    await operations.pauseSchedule("nightly", ann);
    const triggered = await operations.trigger("nightly", ann);
    assert.deepEqual((await app.trail(triggered.id))[0]?.text, "triggered by ann: because");
    await operations.resumeSchedule("nightly", ann);
    assert.equal(await operations.removeSchedule("nightly", ann), true);
    await assert.rejects(operations.trigger("nobody", ann), { code: "not-found" });
    const { entries } = await operations.audit();
    assert.deepEqual(
      entries.toReversed().map(({ actor, action, target }) => [actor, action, target]),
      [
        ["ann", "enqueue", `job:${id}`],
        ["ann", "edit", `job:${id}`],
        ["bob", "run-now", `job:${id}`],
        ["ann", "cancel", 'jobs:{"ids":["p1","nobody"]}'],
        ["ann", "redrive", "job:f1"],
        ["ann", "delete", "job:f2"],
        ["ann", "limit-queue", "queue:q1"],
        ["ann", "resume-queue", "queue:q1"],
        ["ann", "pause-schedule", "schedule:nightly"],
        ["ann", "trigger-schedule", "schedule:nightly"],
        ["ann", "resume-schedule", "schedule:nightly"],
        ["ann", "remove-schedule", "schedule:nightly"],
        ["ann", "trigger-schedule", "schedule:nobody"],
      ],
    );
    assert.deepEqual(entries.at(-4)?.outcome, { cancelled: 1, unknown: 1 });
    assert.deepEqual(entries[0]?.outcome, { error: 'there is no schedule "nobody"', code: "not-found" });
    assert.deepEqual(
      (await operations.audit({ actors: ["bob"] })).entries.map(({ action }) => action),
      ["run-now"],
    );
    await assert.rejects(operations.cancel(["p2"], { actor: "" }), { code: "invalid-name" });
    await assert.rejects(operations.pauseQueue("q1", { actor: "ann", reason: "x".repeat(1_001) }), {
      code: "invalid-option",
    });
  });

  test("all that match: a dry run counts, the task acts, and each step is told", async () => {
    await using app = await furnish(bed);
    const operations = new Operations(app);
    const filter = { states: ["dead"] as const, error: "no row" };
    const dry = await operations.redriveAll(filter, ann, { dryRun: true }).result();
    assert.deepEqual([dry.matched, dry.outcomes, dry.state], [6, {}, "done"]);
    assert.equal(await app.count({ states: ["dead"] }), 12);
    const steps: BulkProgress[] = [];
    const task = operations.redriveAll(filter, ann);
    for await (const step of task) steps.push(step);
    assert.deepEqual(steps.at(-1), { ...dry, outcomes: { redriven: 6 }, changed: 0, looked: dry.looked });
    assert.deepEqual(task.progress, steps.at(-1));
    await app.runUntilIdle();
    assert.equal((await app.get("f2"))?.redrives, 1);
    assert.equal((await app.get("f1"))?.redrives, 0);
    assert.throws(() => operations.cancelAll({ tags: [] }, ann), { code: "invalid-option" });
    await assert.rejects(operations.edit("p0", {}, ann), { code: "invalid-option" });
    assert.deepEqual((await operations.cancelAll({ queues: ["q1"] }, ann).result()).outcomes, {
      cancelled: 5,
    });
    assert.deepEqual((await operations.deleteAll({ names: ["plain"] }, ann).result()).outcomes, {
      deleted: 5,
    });
    const [last] = (await operations.audit({ actions: ["redrive-all"] })).entries;
    assert.deepEqual(last?.outcome, { state: "done", matched: 6, redriven: 6, changed: 0 });
    assert.equal(last?.target, `jobs:${JSON.stringify(filter)}`);
    assert.throws(() => operations.deleteAll({}, ann), { code: "invalid-option" });
  });

  test("all that wait for their time are made due, and those that are due keep their place", async () => {
    await using app = await bed.app({ store: bed.store(), jobs: [later], log: silentLogger });
    const operations = new Operations(app);
    const due = await app.enqueue(later, 0);
    await app.advance("1m");
    const many = await app.enqueueMany(
      later,
      Array.from({ length: 450 }, (_, n) => ({ input: n, delay: "1h" })),
    );
    const before = (await app.get(due.id))?.runAt;
    const filter = { names: [later.name] };
    const dry = await operations.runNowAll(filter, ann, { dryRun: true }).result();
    assert.deepEqual([dry.matched, dry.outcomes], [450, {}]);
    const { outcomes, state } = await operations.runNowAll(filter, ann).result();
    assert.deepEqual([outcomes, state], [{ updated: 450 }, "done"]);
    const now = (await app.health()).now;
    assert.equal(await app.count({ ...filter, runAfter: new Date(now.getTime() + 1) }), 0);
    assert.deepEqual((await app.get(due.id))?.runAt, before);
    const [entry] = (await operations.audit({ actions: ["run-now-all"] })).entries;
    assert.deepEqual(entry?.outcome, { state: "done", matched: 450, updated: 450, changed: 0 });
    assert.match((await app.trail(many[0]?.id ?? "")).at(-1)?.text ?? "", /^made due by ann/);
  });

  test("of a queue the job is found that has been due the longest, not the one enqueued first", async () => {
    await using app = await bed.app({ store: bed.store(), jobs: [later], log: silentLogger });
    const { now } = await app.health();
    const hoursAgo = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000);
    await app.enqueue(later, 1, { delay: "1h" });
    await app.enqueue(later, 2, { runAt: hoursAgo(1) });
    const oldest = await app.enqueue(later, 3, { runAt: hoursAgo(2) });
    assert.equal(await findOldestDue(app.client, "default"), oldest.id);
    assert.equal(await findOldestDue(app.client, "nobody"), null);
  });

  test("the priority of all that have not started is set, and it is checked first", async () => {
    await using app = await bed.app({ store: bed.store(), jobs: [later], log: silentLogger });
    const operations = new Operations(app);
    const [one] = await app.enqueueMany(later, [
      { input: 1, delay: "1h" },
      { input: 2, delay: "1h" },
    ]);
    assert.throws(() => operations.prioritizeAll({ names: ["later"] }, 1.5, ann), { code: "invalid-option" });
    const { outcomes } = await operations.prioritizeAll({ names: ["later"] }, 7, ann).result();
    assert.deepEqual(outcomes, { updated: 2 });
    assert.equal((await app.get(one?.id ?? ""))?.priority, 7);
  });

  test("all that match are met once each, though they fail again at once", async () => {
    await using app = await furnish(bed);
    const operations = new Operations(app);
    const task = operations.redriveAll({ states: ["dead"] }, ann);
    const running = app.runUntilIdle();
    assert.deepEqual((await task.result()).outcomes, { redriven: 12 });
    await running;
    await app.runUntilIdle();
    const { jobs: all } = await app.list({ names: ["flaky"] });
    assert.deepEqual(
      all.map(({ redrives, state }) => [redrives, state]),
      all.map(() => [1, "dead"]),
    );
  });
});

onEveryStore("bulk tasks in trouble", (bed) => {
  test("a lost reply redrives nothing twice, though all fail again before it is noticed", async () => {
    let loses = false;
    const store = losingReply(bed.store(), "redrive", async () => {
      if (!loses) return false;
      loses = false;
      await app.runUntilIdle();
      return true;
    });
    await using app = await bed.app({ store, jobs, log: silentLogger });
    await app.enqueueMany(
      flaky,
      Array.from({ length: 4 }, (_, n) => ({ input: n, id: `f${n}` })),
    );
    await app.runUntilIdle();
    const operations = new Operations(app);
    loses = true;
    const { outcomes, changed, state } = await operations.redriveAll({ states: ["dead"] }, ann).result();
    assert.deepEqual(
      [outcomes, changed, state],
      [{}, 4, "done"],
      "they were redriven, and nobody heard of it",
    );
    const all = (await app.list()).jobs.map(({ redrives, state: now }) => [redrives, now]);
    assert.deepEqual(all, Array(4).fill([1, "dead"]));
  });

  test("a task that is stopped leaves the rest as it was", async () => {
    await using app = await furnish(bed);
    const operations = new Operations(app);
    const stopped = operations.redriveAll({ states: ["dead"] }, ann);
    stopped.stop();
    assert.equal((await stopped.result()).state, "stopped");
    assert.equal(await app.count({ states: ["dead"] }), 12);
    const [entry] = (await operations.audit()).entries;
    assert.deepEqual(entry?.outcome, { state: "stopped", matched: 0, changed: 0 });
  });

  test("a count stops when it is told to, also where the store answers at once", async () => {
    await using app = await bed.app({ jobs: [later], log: silentLogger });
    await app.enqueueMany(
      later,
      Array.from({ length: 1_000 }, (_, n) => ({ input: n })),
    );
    const task = new Operations(app).cancelAll({ names: ["later"] }, ann, { dryRun: true });
    setImmediate(() => setImmediate(() => task.stop()));
    const { state, matched } = await task.result();
    assert.equal(state, "stopped");
    assert(matched < 1_000, `${matched} were counted`);
  });

  test("what cannot be recorded is not done", async () => {
    const store = new FaultyStore(bed.store());
    await using app = await bed.app({ store, jobs, log: silentLogger });
    const operations = new Operations(app);
    store.fail("refuse", ["record"]);
    const refused = assert.rejects(operations.pauseQueue("q1", ann), { code: "store-unavailable" });
    await app.advance("1m");
    await refused;
    assert.deepEqual(await app.queues(), []);
    store.heal();
    await operations.pauseQueue("q1", ann);
    assert.equal((await operations.audit()).entries.length, 1);
  });

  test("an outcome that could not be written leaves the act done, and says that nobody knows", async () => {
    const faulty = new FaultyStore(bed.store());
    const store = losingReply(faulty, "configureQueue", async () => {
      faulty.fail("refuse", ["record"]);
      return false;
    });
    await using app = await bed.app({ store, jobs, log: silentLogger });
    const operations = new Operations(app);
    const pausing = operations.pauseQueue("q1", ann);
    await app.advance("1m");
    assert.equal((await pausing).paused, true);
    faulty.heal();
    assert.deepEqual(
      (await operations.audit()).entries.map(({ action, outcome }) => [action, outcome]),
      [["pause-queue", null]],
    );
  });
});

/** A store whose verb is carried out and, when told so, not answered. */
function losingReply(inner: StoreFactory, verb: keyof Store, isLost: () => Promise<boolean>): StoreFactory {
  return {
    open: async (context) => {
      const store = await inner.open(context);
      return new Proxy(store, {
        get: (_, key) => {
          const value: unknown = Reflect.get(store, key, store);
          if (typeof value !== "function") return value;
          return async (...params: unknown[]) => {
            const answer: unknown = await value.apply(store, params);
            if (key === verb && (await isLost()))
              throw new EscapementError("store-unavailable", "the reply was lost");
            return answer;
          };
        },
      });
    },
  };
}
