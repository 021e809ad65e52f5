import assert from "node:assert/strict";
import { test } from "node:test";
import { createEscapement, defineJob, type JobUpdate } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { onEveryStore } from "./stores.ts";

/** A store whose notices never arrive, as where connections break: what is left is looking. */
function deaf(store: StoreFactory): StoreFactory {
  return {
    async open(context) {
      const opened = await store.open(context);
      return new Proxy(opened, {
        get(target, name) {
          if (name === "subscribe") return async () => async () => {};
          if (name === "capabilities") return { ...target.capabilities, listen: false };
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  };
}

const inWords = (news: JobUpdate): string => {
  switch (news.kind) {
    case "state":
      return `is ${news.state}`;
    case "progress":
      return `progress ${JSON.stringify(news.value)}`;
    case "line":
      return `${news.line.kind} ${news.line.text ?? news.line.error?.message}`;
    case "ended":
      return `ended ${news.job.state} ${JSON.stringify(news.job.result)}`;
  }
};

onEveryStore("watching from another app", (bed) => {
  for (const [how, hears] of [
    ["by notices", (store: StoreFactory) => store],
    ["by looking", deaf],
  ] as const) {
    test(`a job is told from its enqueueing to its end, with each line once, ${how}`, async () => {
      let tries = 0;
      const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const job = defineJob<null>({
        name: "work",
        retry: { attempts: 2, backoff: { delay: "1ms", jitter: 0 } },
        run: async ({ log, progress }) => {
          const gate = gates[tries];
          tries += 1;
          log(`try ${tries}`);
          log("the same line");
          log("the same line");
          progress({ done: tries * 50 });
          await gate?.promise;
          if (tries === 1) throw new Error("not yet");
          return "worked";
        },
      });
      const store = bed.store();
      await using worker = createEscapement({ store, jobs: [job], poll: "200ms", log: silentLogger });
      await using watcher = createEscapement({ store: hears(store), jobs: [job], log: silentLogger });
      const { id } = await watcher.enqueue(job, null);
      const told: string[] = [];
      const watching = (async () => {
        for await (const news of watcher.watch(id)) told.push(inWords(news));
      })();
      await until("it is told as waiting", () => told.includes("is waiting"));
      await worker.start();
      await until("the first progress is told", () => told.includes('progress {"done":50}'));
      gates[0]?.resolve();
      await until("the second progress is told", () => told.includes('progress {"done":100}'));
      gates[1]?.resolve();
      await watching;
      const lines = told.filter((one) => one.startsWith("log") || one.startsWith("failed"));
      assert.deepEqual(lines, [
        ...["log try 1", "log the same line", "log the same line", "failed not yet"],
        ...["log try 2", "log the same line", "log the same line"],
      ]);
      assert.equal(told[0], "is waiting");
      assert.equal(told.at(-1), 'ended succeeded "worked"');
      assert.ok(told.includes("is active"), told.join(", "));
    });

    test(`ends that match are told once each, those from before and of others are not, ${how}`, async () => {
      const good = defineJob<number>({ name: "good", queue: "q", run: ({ input }) => input });
      const bad = defineJob<number>({
        name: "bad",
        queue: "q",
        retry: { attempts: 1 },
        run: () => {
          throw new Error("no");
        },
      });
      const other = defineJob<number>({ name: "other", run: () => {} });
      const jobs = [good, bad, other];
      const store = bed.store();
      await using worker = createEscapement({ store, jobs, poll: "200ms", log: silentLogger });
      await using watcher = createEscapement({ store: hears(store), jobs, log: silentLogger });
      await worker.start();
      await worker.result(await worker.enqueue(good, 0, { id: "before" }));
      // On a clock of milliseconds, an end in the same one as the beginning could be either.
      const { now } = await worker.health();
      await until("time has moved on", async () => (await worker.health()).now > now);
      const told: string[] = [];
      const stop = new AbortController();
      const ends = await watcher.subscribe({ queues: ["q"] }, { signal: stop.signal });
      await worker.enqueue(other, 1, { id: "elsewhere" });
      await worker.enqueueMany(
        good,
        [1, 2, 3].map((input) => ({ input, id: `good-${input}` })),
      );
      await worker.enqueue(bad, 4, { id: "bad-4" });
      await until("all has ended", async () => (await worker.count({ states: ["waiting", "active"] })) === 0);
      const following = (async () => {
        for await (const { id, state } of ends) told.push(`${id} ${state}`);
      })();
      await until("those are told", () => told.length >= 4);
      await worker.enqueue(good, 5, { id: "good-5" });
      await until("that is told too", () => told.length >= 5);
      await worker.redrive("bad-4");
      await until("and a second end of one", () => told.length >= 6);
      stop.abort();
      await following;
      assert.deepEqual(told.slice(0, 4).toSorted(), [
        "bad-4 dead",
        "good-1 succeeded",
        "good-2 succeeded",
        "good-3 succeeded",
      ]);
      assert.deepEqual(told.slice(4), ["good-5 succeeded", "bad-4 dead"]);
    });
  }

  test("an end is told once by looking, however long ago the job was enqueued", async () => {
    const work = defineJob<null>({ name: "work", run: () => {} });
    const store = bed.store();
    await using worker = createEscapement({ store, jobs: [work], poll: "200ms", log: silentLogger });
    await using watcher = createEscapement({ store: deaf(store), jobs: [work], log: silentLogger });
    await worker.enqueue(work, null, { id: "old", delay: "1h" });
    await worker.enqueueMany(
      work,
      Array.from({ length: 50 }, (_, n) => ({ input: null, id: `newer-${n}` })),
    );
    await worker.start();
    await until("those have ended", async () => (await worker.count({ states: ["succeeded"] })) === 50);
    const { now } = await worker.health();
    await until("time has moved on", async () => (await worker.health()).now > now);
    const stop = new AbortController();
    const told: string[] = [];
    const ends = await watcher.subscribe({}, { signal: stop.signal });
    const following = (async () => {
      for await (const { id } of ends) told.push(id);
    })();
    await worker.update("old", { delay: 0 });
    await until("it is told", () => told.length > 0);
    await worker.enqueue(work, null, { id: "last" });
    await until("and the next", () => told.length > 1);
    stop.abort();
    await following;
    assert.deepEqual(told, ["old", "last"]);
  });

  test("a job that is not there cannot be watched, and a watch can be ended", async () => {
    const job = defineJob<null>({ name: "later" });
    await using app = createEscapement({ store: bed.store(), jobs: [job], log: silentLogger });
    await assert.rejects(app.watch("nobody").next(), { code: "not-found" });
    const { id } = await app.enqueue(job, null, { delay: "1h" });
    const stop = new AbortController();
    const watch = app.watch(id, { signal: stop.signal });
    assert.equal((await watch.next()).value?.kind, "state");
    const next = watch.next();
    stop.abort();
    assert.equal((await next).done, true);
    for await (const _ of app.watch(id)) break;
  });

  test("a stop of the app ends what follows jobs, without an error and at once", async () => {
    const job = defineJob<null>({ name: "later" });
    const app = createEscapement({ store: bed.store(), jobs: [job], log: silentLogger });
    const { id } = await app.enqueue(job, null, { delay: "1h" });
    const watch = app.watch(id);
    assert.equal((await watch.next()).value?.kind, "state");
    const ends = await app.subscribe();
    const waiting = [watch.next(), ends.next()];
    // Both look for the first time before the store is closed under them.
    await app.get(id);
    await app.stop();
    for (const { done } of await Promise.all(waiting)) assert.equal(done, true);
    assert.equal((await ends.next()).done, true);
  });
});
