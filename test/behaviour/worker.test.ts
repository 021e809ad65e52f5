import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineJob, type JobFacts, type StopReason, snooze, UnrecoverableError } from "../../src/index.ts";
import { onEveryStore } from "./stores.ts";

const nothing = { input: null } as const;

onEveryStore(
  "running jobs",
  (bed) => {
    test("a job runs once, gets its input, and its result is kept", async () => {
      const seen: unknown[] = [];
      const double = defineJob({
        name: "double",
        input: z.object({ n: z.number() }),
        run: ({ input, job }) => {
          seen.push([input.n, job.attempt, job.token, job.name]);
          return input.n * 2;
        },
      });
      await using app = await bed.app({ jobs: [double] });
      const { id, outcome } = await app.enqueue(double, { n: 21 });
      assert.equal(outcome, "added");
      await app.runUntilIdle();
      assert.deepEqual(seen, [[21, 1, 1, "double"]]);
      assert.equal(await app.result(id), 42);
      const job = await app.get(id);
      assert.equal(job?.state, "succeeded");
      assert.equal(job?.result, 42);
      assert.deepEqual(job?.input, { n: 21 });
    });

    test("without faults every job runs exactly once [C1]", async () => {
      const runs = new Map<string, number>();
      const count = defineJob<number>({
        name: "count",
        run: ({ job }) => void runs.set(job.id, (runs.get(job.id) ?? 0) + 1),
      });
      await using app = await bed.app({ jobs: [count], concurrency: 50 });
      await app.enqueueMany(
        count,
        Array.from({ length: 2_000 }, (_, n) => ({ input: n })),
      );
      await app.runUntilIdle();
      assert.equal(runs.size, 2_000);
      assert.ok([...runs.values()].every((times) => times === 1));
      assert.equal(await app.count({ states: ["succeeded"] }), 2_000);
    });

    test("never early: a delayed job runs at its time, not before", async () => {
      const at: number[] = [];
      const later = defineJob({ name: "later", run: () => void at.push(app.clock.now()) });
      await using app = await bed.app({ jobs: [later] });
      const start = app.clock.now();
      await app.enqueue(later, undefined, { delay: "10m" });
      await app.enqueue(later, undefined, { runAt: new Date(start + 1_800_000) });
      await app.advance("599s");
      assert.deepEqual(at, []);
      await app.advance("1h");
      assert.deepEqual(
        at.map((ms) => ms - start),
        [600_000, 1_800_000],
      );
    });

    test("the highest priority first, then the oldest due [A2]", async () => {
      const order: unknown[] = [];
      const note = defineJob<string>({ name: "note", run: ({ input }) => void order.push(input) });
      await using app = await bed.app({ jobs: [note], concurrency: 1 });
      await app.pauseQueue("default");
      await app.enqueue(note, "second", { delay: "2s" });
      await app.enqueue(note, "first", { delay: "1s" });
      await app.enqueue(note, "urgent", { priority: 5, delay: "3s" });
      await app.enqueue(note, "last", { priority: -1 });
      await app.advance("10s");
      assert.deepEqual(order, []);
      await app.resumeQueue("default");
      await app.runUntilIdle();
      assert.deepEqual(order, ["urgent", "first", "second", "last"]);
    });

    test("a failing job climbs the ladder and then is dead, each failure in its trail [A5, A6]", async () => {
      const at: number[] = [];
      const fails = defineJob({
        name: "fails",
        retry: { attempts: 7, backoff: { jitter: 0 } },
        run: ({ job }) => {
          at.push(app.clock.now());
          throw new Error(`try ${job.attempt}`);
        },
      });
      await using app = await bed.app({ jobs: [fails] });
      const { id } = await app.enqueue(fails, undefined);
      await app.advance("2h");
      const waits = at.slice(1).map((ms, index) => (ms - (at[index] ?? 0)) / 1_000);
      assert.deepEqual(waits, [30, 60, 120, 240, 480, 900]);
      const job = await app.get(id);
      assert.equal(job?.state, "dead");
      assert.equal(job?.error?.message, "try 7");
      assert.match(job?.reason ?? "", /attempts used up/);
      const trail = await app.trail(id);
      assert.deepEqual(
        trail.map(({ kind, attempt, error }) => [kind, attempt, error?.message]),
        Array.from({ length: 7 }, (_, n) => ["failed", n + 1, `try ${n + 1}`]),
      );
    });

    test("a retry keeps fireAt, the input and the idempotency key", async () => {
      const seen: string[] = [];
      const flaky = defineJob<string>({
        name: "flaky",
        run: ({ job, input }) => {
          seen.push(`${job.idempotencyKey} ${job.fireAt.getTime()} ${input}`);
          if (job.attempt < 3) throw new Error("not yet");
        },
      });
      await using app = await bed.app({ jobs: [flaky] });
      await app.enqueue(flaky, "x");
      await app.advance("10m");
      assert.equal(seen.length, 3);
      assert.equal(new Set(seen).size, 1);
    });

    test("an at-most-once job that raises is dead with its error and never runs again [K8]", async () => {
      let runs = 0;
      const once = defineJob({
        name: "once",
        delivery: "at-most-once",
        run: () => {
          runs += 1;
          throw new Error("no");
        },
      });
      await using app = await bed.app({ jobs: [once] });
      const { id } = await app.enqueue(once, undefined);
      await app.advance("1h");
      const job = await app.get(id);
      assert.deepEqual([runs, job?.state, job?.error?.message], [1, "dead", "no"]);
      assert.deepEqual(await app.redrive(id), { redriven: 1 });
      await app.advance("1m");
      assert.equal(runs, 2, "a person may send it again");
    });

    test("UnrecoverableError ends the ladder at once", async () => {
      let runs = 0;
      const broken = defineJob({
        name: "broken",
        run: () => {
          runs += 1;
          throw new UnrecoverableError("gone");
        },
      });
      await using app = await bed.app({ jobs: [broken] });
      const { id } = await app.enqueue(broken, undefined);
      await app.advance("1h");
      assert.equal(runs, 1);
      assert.equal((await app.get(id))?.state, "dead");
    });

    test("whatever a handler throws is recorded, and harms nobody else", async () => {
      const odd: (() => unknown)[] = [
        () => undefined,
        () => "a text",
        () => Object.assign(new Error("x"), { message: undefined }),
        () => Object.assign(new Error("x"), { stack: 5, name: {} }),
        () =>
          new Proxy(new Error("x"), {
            get() {
              throw new Error("do not look");
            },
          }),
        () => ({ toString: null }),
      ];
      const throwing = defineJob<number>({
        name: "throwing",
        retry: { attempts: 1 },
        run: ({ input }) => {
          throw odd[input]?.();
        },
      });
      await using app = await bed.app({ jobs: [throwing] });
      await app.enqueueMany(
        throwing,
        odd.map((_, input) => ({ input })),
      );
      await app.runUntilIdle();
      const { jobs } = await app.list({ states: ["dead"] });
      assert.equal(jobs.length, odd.length);
      for (const { error } of jobs) assert.equal(typeof error?.message, "string");
    });

    test("a listener that fails later harms nothing either, and trouble that nobody listens for is logged", async () => {
      const logged: string[] = [];
      const log = {
        debug() {},
        info() {},
        warn() {},
        error: (_: object, message: string) => void logged.push(message),
      };
      const job = defineJob<null>({ name: "job", run: () => {} });
      await using app = await bed.app({ jobs: [job], log });
      app.on("succeeded", async () => {
        throw new Error("later");
      });
      await app.enqueue(job, null);
      await app.runUntilIdle();
      await app.clock.settle();
      assert.deepEqual(logged, ["a listener failed"]);
      assert.throws(() => app.on("succeded" as "succeeded", () => {}), { code: "invalid-option" });
    });

    test("a snooze moves the job and uses up no attempt; at-most-once cannot snooze", async () => {
      const attempts: number[] = [];
      const sleepy = defineJob<null>({
        name: "sleepy",
        run: ({ job }) => {
          attempts.push(job.attempt);
          return attempts.length < 4 ? snooze("5m") : "done";
        },
      });
      const strict = defineJob<null>({ name: "strict", delivery: "at-most-once", run: () => snooze("5m") });
      await using app = await bed.app({ jobs: [sleepy, strict] });
      const { id } = await app.enqueue(sleepy, null);
      const other = await app.enqueue(strict, null);
      await app.advance("16m");
      assert.deepEqual(attempts, [1, 1, 1, 1]);
      assert.equal((await app.get(id))?.state, "succeeded");
      assert.equal((await app.get(other.id))?.state, "dead");
    });

    test("a timeout is a failure: the signal fires, and what the handler returns afterwards does not count", async () => {
      const reasons: unknown[] = [];
      const slow = defineJob<null>({
        name: "slow",
        timeout: "10s",
        retry: { attempts: 1 },
        run: ({ signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              reasons.push(signal.reason.cause);
              resolve("too late");
            });
          }),
      });
      await using app = await bed.app({ jobs: [slow] });
      const { id } = await app.enqueue(slow, null);
      await app.advance("9s");
      assert.equal((await app.get(id))?.state, "active");
      await app.advance("2s");
      const job = await app.get(id);
      assert.deepEqual(reasons, ["timeout"]);
      assert.equal(job?.state, "dead");
      assert.equal(job?.error?.name, "TimeoutError");
    });

    test("a handler that never settles after its timeout keeps its slot, not its job", async () => {
      const stuck = defineJob<null>({
        name: "stuck",
        timeout: "10s",
        retry: { attempts: 1 },
        run: () => new Promise(() => {}),
      });
      const quick = defineJob<null>({ name: "quick", run: () => "ok" });
      const app = await bed.app({ jobs: [stuck, quick], concurrency: 1 });
      const { id } = await app.enqueue(stuck, null);
      await app.advance("60s");
      assert.equal((await app.get(id))?.state, "dead");
      const waiting = await app.enqueue(quick, null);
      await app.advance("60s");
      assert.equal((await app.get(waiting.id))?.state, "waiting", "the one slot is still taken");
      const stopping = app.stop({ timeout: 0 });
      await app.clock.advance(5_000);
      await stopping;
    });

    test("a cancelled handler that does not listen times out like any other", async () => {
      const deaf = defineJob<null>({ name: "deaf", timeout: "10s", run: () => new Promise<void>(() => {}) });
      const app = await bed.app({ jobs: [deaf] });
      const { id } = await app.enqueue(deaf, null);
      await app.advance("1s");
      assert.deepEqual(await app.cancel(id), { requested: 1 });
      await app.advance("30s");
      assert.equal((await app.get(id))?.state, "active", "it has a lease's time to settle");
      await app.advance("15s");
      assert.equal((await app.get(id))?.state, "cancelled");
      await app[Symbol.asyncDispose]();
    });

    const skip = bed.noTransactions;
    test("enqueueing inside a handler's tx is part of it: it commits or rolls back with the job", {
      skip,
    }, async () => {
      const child = defineJob<string>({ name: "child" });
      const parent = defineJob<boolean>({
        name: "parent",
        delivery: "effectively-once",
        retry: { attempts: 1 },
        run: async ({ input, tx }) => {
          const receipts: Promise<unknown>[] = [];
          await tx((db) => {
            receipts.push(app.enqueue(child, "of a parent", { id: `child-${input}`, tx: db }));
            if (!input) throw new Error("rolled back");
          });
          await Promise.all(receipts);
        },
      });
      await using app = await bed.app({ jobs: [parent] });
      await app.enqueue(parent, true);
      await app.enqueue(parent, false);
      await app.runUntilIdle();
      assert.deepEqual(
        (await app.list({ names: ["child"] })).jobs.map(({ id }) => id),
        ["child-true"],
      );
    });

    test("cancelling: a waiting job is cancelled at once, an active one is told, and a success that still comes wins [D7]", async () => {
      let finish: (value: string) => void = () => {};
      const reasons: unknown[] = [];
      const stubborn = defineJob<null>({
        name: "stubborn",
        run: () => new Promise<string>((resolve) => (finish = resolve)),
      });
      const polite = defineJob<null>({
        name: "polite",
        run: ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              reasons.push((signal.reason as StopReason).cause);
              reject(signal.reason);
            });
          }),
      });
      await using app = await bed.app({ jobs: [stubborn, polite] });
      const waiting = await app.enqueue(polite, null, { delay: "1h" });
      const a = await app.enqueue(stubborn, null);
      const b = await app.enqueue(polite, null);
      await app.clock.settle();
      await app.clock.settle();
      assert.deepEqual(await app.cancel([waiting.id, a.id, b.id, "nope"]), {
        cancelled: 1,
        requested: 2,
        unknown: 1,
      });
      await app.clock.settle();
      finish("made it");
      await app.runUntilIdle();
      assert.deepEqual(reasons, ["cancelled"]);
      const states = await Promise.all(
        [waiting.id, a.id, b.id].map(async (id) => (await app.get(id))?.state),
      );
      assert.deepEqual(states, ["cancelled", "succeeded", "cancelled"]);
      assert.deepEqual(await app.cancel([a.id, b.id]), { terminal: 2 });
    });

    test("progress and log lines reach the store", async () => {
      const talk = defineJob<null>({
        name: "talk",
        run: ({ log, progress }) => {
          log("one");
          progress({ percent: 50 });
          log("two");
          // Cut in the middle of a character.
          log(`${"x".repeat(1_999)}🙂`);
          progress({ percent: 100 });
        },
      });
      await using app = await bed.app({ jobs: [talk] });
      const { id } = await app.enqueue(talk, null);
      await app.runUntilIdle();
      assert.deepEqual(
        (await app.trail(id)).map(({ kind, text }) => [kind, text]),
        [
          ["log", "one"],
          ["log", "two"],
          ["log", `${"x".repeat(1_999)}\ufffd`],
        ],
      );
      assert.deepEqual((await app.get(id))?.progress, { percent: 100 });
    });

    test("what a handler said before its tx is kept", { skip: bed.noTransactions }, async () => {
      const talk = defineJob<null>({
        name: "talk",
        delivery: "effectively-once",
        run: async ({ log, tx }) => {
          log("before");
          await tx(() => null);
        },
      });
      await using app = await bed.app({ jobs: [talk] });
      const { id } = await app.enqueue(talk, null);
      await app.runUntilIdle();
      assert.deepEqual(
        (await app.trail(id)).map(({ text }) => text),
        ["before"],
      );
    });

    test("concurrency per key and per queue, rate per definition: the limits hold at every moment", async () => {
      const active = new Map<string, number>();
      let most = 0;
      let starts: number[] = [];
      const keyed = defineJob<string>({
        name: "keyed",
        concurrency: { key: (input) => input, limit: 2 },
        run: async ({ input }) => {
          active.set(input, (active.get(input) ?? 0) + 1);
          most = Math.max(most, active.get(input) ?? 0);
          await new Promise<void>((resolve) => app.clock.after(1_000, resolve));
          active.set(input, (active.get(input) ?? 0) - 1);
        },
      });
      const limited = defineJob<null>({
        name: "limited",
        queue: "slow",
        rate: { limit: 3, per: "10s" },
        run: () => void starts.push(app.clock.now()),
      });
      await using app = await bed.app({ jobs: [keyed, limited], concurrency: 20 });
      await app.enqueueMany(
        keyed,
        Array.from({ length: 12 }, (_, n) => ({ input: n % 2 === 0 ? "a" : "b" })),
      );
      await app.enqueueMany(
        limited,
        Array.from({ length: 7 }, () => nothing),
      );
      const begin = app.clock.now();
      await app.advance("2500ms");
      assert.equal(await app.count({ names: ["keyed"], states: ["succeeded"] }), 8);
      await app.advance("30s");
      assert.equal(most, 2);
      assert.equal(await app.count({ states: ["succeeded"] }), 19);
      assert.deepEqual(
        starts.map((ms) => ms - begin),
        [0, 0, 0, 10_000, 10_000, 10_000, 20_000],
      );
      starts = [];
      await app.configureQueue("slow", { rate: { limit: 1, per: "1m" } });
      await app.enqueueMany(limited, [nothing, nothing]);
      await app.advance("5m");
      assert.equal(starts.length, 2);
      assert.ok((starts[1] ?? 0) - (starts[0] ?? 0) >= 60_000);
    });

    test("a worker takes only its queues, each with its own limit", async () => {
      const active = { a: 0, most: 0 };
      const define = (name: string, queue: string) =>
        defineJob<null>({
          name,
          queue,
          run: async () => {
            active.a += 1;
            active.most = Math.max(active.most, active.a);
            await new Promise<void>((resolve) => app.clock.after(100, resolve));
            active.a -= 1;
          },
        });
      const [inA, inB] = [define("in-a", "a"), define("in-b", "b")];
      const { TestEscapement } = await import("../../src/testing/kit.ts");
      const { VirtualClock } = await import("../../src/testing/virtual-clock.ts");
      await using app = new TestEscapement({ store: bed.store(), jobs: [inA, inB] }, new VirtualClock());
      await app.start({ queues: { a: { concurrency: 2 } } });
      await app.enqueueMany(inA, [nothing, nothing, nothing, nothing]);
      await app.enqueue(inB, null);
      await app.advance("10s");
      assert.equal(active.most, 2);
      assert.equal(await app.count({ queues: ["a"], states: ["succeeded"] }), 4);
      assert.equal(await app.count({ queues: ["b"], states: ["waiting"] }), 1);
    });

    test("input is validated again when it is claimed: what fits nowhere is dead in the end", async () => {
      const store = bed.store();
      const before = defineJob<{ n: string }>({ name: "shape" });
      const after = defineJob({ name: "shape", input: z.object({ n: z.number() }), run: () => {} });
      await using app = await bed.app({ store, jobs: [after] });
      const { id } = await app.enqueue(before, { n: "text" });
      await app.advance("12m");
      const job = await app.get(id);
      assert.equal(job?.state, "dead");
      assert.match(job?.error?.message ?? "", /does not fit its schema: n:/);
    });

    test("events tell the story of this process, and a listener that throws harms nothing", async () => {
      const story: string[] = [];
      const tell = (what: string) => (event: { job: JobFacts }) =>
        void story.push(`${what} ${event.job.name} ${event.job.attempt}`);
      const flaky = defineJob<null>({
        name: "flaky",
        retry: { attempts: 2 },
        run: ({ job }) => {
          if (job.attempt === 1) throw new Error("first");
        },
      });
      await using app = await bed.app({
        jobs: [flaky],
        log: { debug() {}, info() {}, warn() {}, error() {} },
      });
      app.on("started", () => {
        throw new Error("a bad listener");
      });
      app.on("started", tell("started")).on("failed", tell("failed")).on("succeeded", tell("succeeded"));
      await app.enqueue(flaky, null);
      await app.advance("5m");
      assert.deepEqual(story, ["started flaky 1", "failed flaky 1", "started flaky 2", "succeeded flaky 2"]);
    });

    test("expireIn: a job not started in time is recorded as expired, one that has started is not", async () => {
      let runs = 0;
      const late = defineJob<null>({
        name: "late",
        expireIn: "5m",
        run: ({ job }) => {
          runs += 1;
          if (job.attempt === 1) throw new Error("once more");
        },
      });
      await using app = await bed.app({ jobs: [late] });
      await app.pauseQueue("default");
      const expired = await app.enqueue(late, null);
      await app.advance("6m");
      await app.resumeQueue("default");
      const started = await app.enqueue(late, null);
      await app.advance("30m");
      const [first, second] = await Promise.all([app.get(expired.id), app.get(started.id)]);
      assert.deepEqual([first?.state, first?.reason], ["cancelled", "expired"]);
      assert.deepEqual([second?.state, runs], ["succeeded", 2]);
    });

    test("after: a child waits for its parents, and is cancelled or runs when one of them fails", async () => {
      const order: string[] = [];
      const step = defineJob<string>({
        name: "step",
        retry: { attempts: 1 },
        run: ({ input }) => {
          order.push(input);
          if (input === "bad") throw new Error("bad");
        },
      });
      await using app = await bed.app({ jobs: [step] });
      const a = await app.enqueue(step, "a", { delay: "1m" });
      const bad = await app.enqueue(step, "bad", { delay: "2m" });
      await app.enqueue(step, "child", { after: [a.id] });
      const orphan = await app.enqueue(step, "orphan", { after: [a.id, bad.id] });
      await app.enqueue(step, "anyway", { after: [bad.id], afterFailure: "run" });
      await app.runUntilIdle();
      assert.deepEqual(order, []);
      await app.advance("10m");
      assert.deepEqual(order, ["a", "child", "bad", "anyway"]);
      const job = await app.get(orphan.id);
      assert.equal(job?.state, "cancelled");
      assert.match(job?.reason ?? "", new RegExp(`parent.*${bad.id}`));
      await assert.rejects(app.enqueue(step, "x", { after: ["nobody"] }), { code: "unknown-parent" });
    });
  },
  "locally",
);
