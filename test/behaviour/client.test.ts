import assert from "node:assert/strict";
import { test } from "node:test";
import { createEscapement, defineJob, type HandlerContext } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { FaultyStore } from "./faulty.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore(
  "asking and changing",
  (bed) => {
    test("the same id is one job, also at once, also after it has run [C3, K3]", async () => {
      let runs = 0;
      const job = defineJob<number>({
        name: "job",
        run: () => {
          runs += 1;
        },
      });
      await using app = await bed.app({ jobs: [job] });
      const receipts = await Promise.all([1, 2, 3].map((n) => app.enqueue(job, n, { id: "same" })));
      assert.deepEqual(
        receipts.map(({ outcome }) => outcome),
        ["added", "existing", "existing"],
      );
      await app.runUntilIdle();
      assert.deepEqual(await app.enqueue(job, 9, { id: "same" }), { id: "same", outcome: "existing" });
      await app.advance("1h");
      assert.equal(runs, 1);
      assert.equal((await app.get("same"))?.input, 1);
    });

    test("enqueueMany takes 100,000 at a call and tells its progress", async () => {
      const bulk = defineJob<number>({ name: "bulk" });
      await using app = await bed.app({ jobs: [bulk] });
      const told: number[] = [];
      const items = Array.from({ length: 100_000 }, (_, n) => ({ input: n, id: `bulk-${n}` }));
      const receipts = await app.enqueueMany(bulk, items, { onProgress: (written) => told.push(written) });
      assert.equal(receipts.length, 100_000);
      assert.deepEqual(
        told,
        Array.from({ length: 100 }, (_, n) => (n + 1) * 1_000),
      );
      assert.equal(await app.count({ states: ["waiting"] }), 100_000);
    });

    test("enqueueMany writes nothing when one input is bad", async () => {
      const bulk = defineJob<unknown>({ name: "bulk" });
      await using app = await bed.app({ jobs: [bulk] });
      const items = [{ input: 1 }, { input: 2n }];
      await assert.rejects(app.enqueueMany(bulk, items), { code: "input-not-serialisable" });
      assert.equal(await app.count(), 0);
    });

    test("enqueueMany of several definitions is all or none of them", async () => {
      const [a, b] = [defineJob<number>({ name: "a" }), defineJob<string>({ name: "b" })];
      await using app = await bed.app({ jobs: [] });
      const receipts = await app.enqueueMany([
        { job: a, input: 1, id: "{t}1" },
        { job: b, input: "x", id: "{t}2", after: ["{t}1"] },
      ]);
      assert.deepEqual(
        receipts.map(({ outcome }) => outcome),
        ["added", "added"],
      );
      assert.equal((await app.get("{t}2"))?.state, "blocked");
      const broken = app.enqueueMany([
        { job: a, input: 1, id: "{t}3" },
        { job: b, input: "x", id: "{t}4", after: ["{t}nobody"] },
        { job: a, input: 1, id: "{t}5", after: receipts },
      ]);
      await assert.rejects(broken, {
        code: "unknown-parent",
        message: /"\{t\}4" waits for "\{t\}nobody".*none of the 3 jobs/,
      });
      const tooMany = Array.from({ length: 1_001 }, (_, input) => ({ job: a, input }));
      await assert.rejects(app.enqueueMany(tooMany), {
        code: "invalid-option",
        message: /at most 1000 jobs/,
      });
      assert.equal(await app.count(), 2);
    });

    for (const fault of ["refuse", "lose-reply"] as const) {
      test(`enqueueMany of several definitions is all or none of them when the store fails (${fault})`, async () => {
        const [a, b] = [defineJob<number>({ name: "a" }), defineJob<string>({ name: "b" })];
        const store = new FaultyStore(bed.store());
        await using app = await bed.app({ jobs: [], store });
        const ask = (ids: readonly string[]): Promise<unknown> =>
          app.enqueueMany(
            ids.map((id, n) => (n % 2 === 0 ? { job: a, input: n, id } : { job: b, input: "x", id })),
          );
        const ids = ["{t}1", "{t}2", "{t}3"];
        store.fail(fault, ["enqueue"], 1);
        const asked = ask(ids);
        await app.advance("5s");
        await asked;
        assert.equal(await app.count(), 3, "it was repeated, and is there once");
        store.fail(fault, ["enqueue"]);
        const lost = ask(["{t}4", "{t}5"]).then(
          () => assert.fail("it was acknowledged"),
          (error: unknown) => error,
        );
        await app.advance("5m");
        assert.equal(((await lost) as { code: string }).code, "store-unavailable");
        store.heal();
        assert.equal(await app.count(), fault === "refuse" ? 3 : 5);
      });
    }

    test("enqueueMany takes part in the caller's transaction", { skip: bed.noTransactions }, async () => {
      const [a, b] = [defineJob<number>({ name: "a" }), defineJob<number>({ name: "b" })];
      const outer = defineJob({
        name: "outer",
        retry: { attempts: 1 },
        run: ({ input, tx }: HandlerContext<"commit" | "roll back">) =>
          tx((db) => {
            const items = Array.from({ length: 1_200 }, (_, n) => ({ input: n, id: `${input} ${n}` }));
            void app.enqueueMany(a, items, { tx: db });
            void app.enqueueMany([{ job: b, input: 1, id: `${input} b`, after: [`${input} 0`] }], { tx: db });
            if (input === "roll back") throw new Error("undo");
          }),
      });
      await using app = await bed.app({ jobs: [outer] });
      await app.enqueue(outer, "roll back");
      await app.runUntilIdle();
      assert.equal(await app.count({ names: ["a", "b"] }), 0);
      await app.enqueue(outer, "commit");
      await app.runUntilIdle();
      assert.equal(await app.count({ names: ["a", "b"] }), 1_201);
    });

    test("list pages through what matches, newest first, and count agrees", async () => {
      const [a, b] = [defineJob<number>({ name: "a" }), defineJob<number>({ name: "b", queue: "other" })];
      await using app = await bed.app({ jobs: [a, b] });
      for (let n = 0; n < 25; n++)
        await app.enqueue(n % 5 === 0 ? b : a, n, { tags: n < 10 ? ["early", "x"] : [] });
      const inputs: unknown[] = [];
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof app.list>> = await app.list(
          { names: ["a"] },
          { limit: 7, cursor },
        );
        inputs.push(...page.jobs.map((job) => job.input));
        cursor = page.cursor;
      } while (cursor !== null);
      assert.deepEqual(
        inputs,
        Array.from({ length: 25 }, (_, n) => 24 - n).filter((n) => n % 5 !== 0),
      );
      assert.equal(await app.count({ names: ["a"] }), 20);
      assert.equal(await app.count({ tags: ["x", "early"], queues: ["other"] }), 2);
      const rows = await app.countBy(["queue", "state"]);
      const sorted = rows.toSorted((x, y) => (x.queue ?? "").localeCompare(y.queue ?? ""));
      assert.deepEqual(sorted, [
        { queue: "default", state: "waiting", count: 20 },
        { queue: "other", state: "waiting", count: 5 },
      ]);
      const oldest = await app.list({}, { order: "oldest", limit: 1 });
      assert.equal(oldest.jobs[0]?.input, 0);
    });

    test("dead jobs can be listed, looked at, and redriven: one, several, all that match [C5]", async () => {
      let healthy = false;
      const fragile = defineJob<number>({
        name: "fragile",
        retry: { attempts: 1 },
        run: () => {
          if (!healthy) throw new Error("down");
        },
      });
      await using app = await bed.app({ jobs: [fragile], concurrency: 100 });
      const ids = (
        await app.enqueueMany(
          fragile,
          Array.from({ length: 50 }, (_, n) => ({ input: n })),
        )
      ).map(({ id }) => id);
      await app.runUntilIdle();
      const { jobs } = await app.list({ states: ["dead"] }, { limit: 100 });
      assert.equal(jobs.length, 50);
      assert.equal(jobs[0]?.error?.message, "down");
      healthy = true;
      assert.deepEqual(await app.redrive(ids[0] ?? ""), { redriven: 1 });
      assert.deepEqual(await app.redrive([ids[1] ?? "", ids[2] ?? "", "unknown"]), {
        redriven: 2,
        unknown: 1,
      });
      await app.runUntilIdle();
      assert.deepEqual(await app.redrive([ids[1] ?? ""]), { refused: 1 });
      assert.deepEqual(await app.redrive({ states: ["dead"] }, { reason: "it is up again" }), {
        redriven: 47,
      });
      await app.runUntilIdle();
      assert.equal(await app.count({ states: ["succeeded"] }), 50);
      const trail = await app.trail(ids[9] ?? "");
      assert.deepEqual(trail.map(({ kind, text }) => [kind, text]).slice(-1), [
        ["redriven", "it is up again"],
      ]);
    });

    test("unique: one job for each key, while pending or for a time; the absorbed id finds its job", async () => {
      const pending = defineJob<string>({
        name: "pending",
        unique: { key: (input) => input, for: "pending" },
        run: () => {},
      });
      const hourly = defineJob<string>({
        name: "hourly",
        unique: { key: (input) => input, for: "1h" },
        run: () => {},
      });
      await using app = await bed.app({ jobs: [pending, hourly] });
      const first = await app.enqueue(pending, "k", { delay: "1m", id: "one" });
      assert.deepEqual(await app.enqueue(pending, "k", { id: "two" }), { id: first.id, outcome: "absorbed" });
      assert.equal((await app.enqueue(pending, "other")).outcome, "added");
      assert.deepEqual(await app.enqueue(pending, "k", { id: "two" }), { id: first.id, outcome: "existing" });
      assert.equal((await app.get("two"))?.id, "one");
      await app.advance("2m");
      assert.equal(
        (await app.enqueue(pending, "k", { id: "three" })).outcome,
        "added",
        "the first has ended",
      );

      assert.equal((await app.enqueue(hourly, "k")).outcome, "added");
      await app.advance("59m");
      assert.equal((await app.enqueue(hourly, "k")).outcome, "absorbed");
      await app.advance("2m");
      assert.equal((await app.enqueue(hourly, "k")).outcome, "added");
    });

    test("debounce: runs once things are quiet, with the latest input, at the latest after max", async () => {
      const runs: unknown[] = [];
      const index = defineJob<{ doc: string; rev: number }>({
        name: "index",
        debounce: { key: (input) => input.doc, wait: "5s", max: "12s" },
        run: ({ input }) => void runs.push([input.doc, input.rev, (app.clock.now() - start) / 1_000]),
      });
      await using app = await bed.app({ jobs: [index] });
      const start = app.clock.now();
      const outcomes: string[] = [];
      for (let rev = 1; rev <= 5; rev++) {
        outcomes.push((await app.enqueue(index, { doc: "a", rev })).outcome);
        if (rev === 1) await app.enqueue(index, { doc: "b", rev });
        await app.advance("3s");
      }
      await app.advance("1m");
      assert.deepEqual(outcomes, ["added", "debounced", "debounced", "debounced", "added"]);
      assert.deepEqual(runs, [
        ["b", 1, 5],
        ["a", 4, 12],
        ["a", 5, 17],
      ]);
    });

    test("update changes a job that has not started, and no other", async () => {
      const seen: unknown[] = [];
      const job = defineJob<string>({ name: "job", run: ({ input }) => void seen.push(input) });
      await using app = await bed.app({ jobs: [job] });
      const { id } = await app.enqueue(job, "old", { delay: "1h" });
      assert.deepEqual(await app.update(id, { input: "new", delay: "1m", priority: 3 }), {
        outcome: "updated",
        state: "waiting",
      });
      await app.advance("61s");
      assert.deepEqual(seen, ["new"]);
      assert.deepEqual(await app.update(id, { priority: 1 }), { outcome: "refused", state: "succeeded" });
      assert.deepEqual(await app.update("nobody", { priority: 1 }), { outcome: "unknown", state: null });
    });

    test("result waits for the end, and says why when it is a bad one", async () => {
      const job = defineJob<boolean>({
        name: "job",
        retry: { attempts: 1 },
        run: ({ input }) => {
          if (!input) throw new Error("as asked");
          return { ok: true };
        },
      });
      await using app = await bed.app({ jobs: [job] });
      const good = await app.enqueue(job, true, { delay: "10s" });
      const bad = await app.enqueue(job, false, { delay: "10s" });
      const waiting = app.result(good.id, { timeout: "1m" });
      const failing = assert.rejects(app.result(bad.id, { timeout: "1m" }), {
        code: "job-failed",
        message: /as asked/,
      });
      const slow = assert.rejects(app.result(good.id, { timeout: "5s" }), { code: "result-timeout" });
      await app.advance("30s");
      assert.deepEqual(await waiting, { ok: true });
      await failing;
      await slow;
      await assert.rejects(app.result("nobody"), { code: "not-found" });
    });

    test("nodes tells who is alive and what it runs", async () => {
      const job = defineJob<null>({ name: "job", run: () => {} });
      await using app = await bed.app({ jobs: [job], concurrency: 7 });
      const [node, ...others] = await app.nodes();
      assert.equal(others.length, 0);
      assert.deepEqual(
        [node?.alive, node?.names, node?.roles, node?.concurrency, node?.pid],
        [true, ["job"], ["worker", "planner", "reaper"], 7, process.pid],
      );
    });

    test("a node that runs no worker handles no job, whatever it knows of them", async () => {
      const job = defineJob<null>({ name: "job", run: () => {} });
      await using app = createEscapement({ store: bed.store(), jobs: [job], log: silentLogger });
      await app.start({ roles: ["planner"] });
      assert.deepEqual((await app.nodes())[0]?.names, []);
    });

    test("queues: what was configured is told back, and a limit can be taken away", async () => {
      await using app = await bed.app();
      await app.configureQueue("q", { concurrency: 3, rate: { limit: 5, per: "1s" } });
      assert.deepEqual(await app.queues(), [
        { queue: "q", paused: false, concurrency: 3, rate: { limit: 5, perMs: 1_000 } },
      ]);
      await app.pauseQueue("q");
      await app.configureQueue("q", { rate: null });
      assert.deepEqual(await app.queues(), [{ queue: "q", paused: true, concurrency: 3, rate: null }]);
    });

    test("a process that only enqueues needs neither handlers nor start", async () => {
      const job = defineJob<number>({ name: "elsewhere" });
      await using app = createEscapement({ store: bed.store(), log: silentLogger });
      const { id } = await app.enqueue(job, 1);
      assert.equal((await app.get(id))?.state, "waiting");
    });

    test("namespaces see nothing of each other", async () => {
      const store = bed.store();
      const job = defineJob<number>({ name: "job" });
      await using a = createEscapement({ store, namespace: "a", log: silentLogger });
      await using b = createEscapement({ store, namespace: "b", log: silentLogger });
      await a.enqueue(job, 1, { id: "x" });
      assert.equal(await b.get("x"), null);
      assert.equal((await b.enqueue(job, 2, { id: "x" })).outcome, "added");
      assert.equal((await a.get("x"))?.input, 1);
    });
  },
  "locally",
);
