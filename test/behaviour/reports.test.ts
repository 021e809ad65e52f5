import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/clock.ts";
import { type AnyDefinition, defineJob, type HandlerContext, type JobDefinition } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { Report } from "../../src/store/claims.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { override } from "../../src/testing/override.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("reports", (bed) => {
  /** A store that takes its time over reports, and counts them. */
  function slowly(inner: StoreFactory, clock: VirtualClock) {
    const calls = { report: 0 };
    const store: StoreFactory = {
      async open(context) {
        const opened = await inner.open(context);
        return override(opened, {
          async report(params) {
            calls.report += 1;
            await sleep(clock, 5);
            await opened.report(params);
          },
        });
      },
    };
    return { store, calls };
  }

  async function start(clock: VirtualClock, store: StoreFactory, jobs: AnyDefinition[]) {
    const app = new TestEscapement({ store, jobs, concurrency: 100, log: silentLogger }, clock);
    await app.start();
    return app;
  }

  async function assertAllKept(app: TestEscapement, ids: readonly string[], line: string): Promise<void> {
    const kept = await Promise.all(
      ids.map(async (id) => {
        const [trail, job] = [await app.trail(id), await app.get(id)];
        return [trail.filter(({ text }) => text === line).length, job?.progress];
      }),
    );
    assert.deepEqual(
      kept,
      ids.map(() => [1, 100]),
    );
  }

  const ends: Record<string, (context: HandlerContext<number>) => unknown> = {
    succeeded: () => "done",
    dead() {
      throw new Error("as planned");
    },
    cancelled() {
      throw new Error("as planned");
    },
  };
  for (const [state, end] of Object.entries(ends)) {
    test(`jobs that end close together keep their last line and progress (${state})`, async () => {
      const clock = new VirtualClock();
      const job = defineJob<number>({
        name: "job",
        retry: { attempts: 1 },
        async run(context) {
          await sleep(clock, 1_000 + (context.input % 7));
          context.log("the last line");
          context.progress(100);
          return end(context);
        },
      });
      await using app = await start(clock, slowly(bed.store(), clock).store, [job]);
      const inputs = Array.from({ length: 100 }, (_, n) => ({ input: n }));
      const ids = (await app.enqueueMany(job, inputs)).map(({ id }) => id);
      await clock.advance(500);
      if (state === "cancelled") await app.cancel({ ids });
      await clock.advance(5_000);
      assert.equal(await app.count({ states: [state as "dead"] }), 100);
      await assertAllKept(app, ids, "the last line");
    });
  }

  const skip = bed.noTransactions;
  test("what is logged before tx is kept when tx ends the job", { skip }, async () => {
    const clock = new VirtualClock();
    const job = defineJob<number>({
      name: "job",
      delivery: "effectively-once",
      async run({ input, tx, log, progress }) {
        await sleep(clock, 1_000 + (input % 7));
        log("the last line");
        progress(100);
        await tx(() => "done");
      },
    });
    await using app = await start(clock, slowly(bed.store(), clock).store, [job]);
    const inputs = Array.from({ length: 30 }, (_, n) => ({ input: n }));
    const ids = (await app.enqueueMany(job, inputs)).map(({ id }) => id);
    await clock.advance(5_000);
    assert.equal(await app.count({ states: ["succeeded"] }), 30);
    await assertAllKept(app, ids, "the last line");
  });

  test("a job that logs 200 lines at once keeps them all, of more the latest 200", async () => {
    const clock = new VirtualClock();
    const job = defineJob<number>({
      name: "job",
      run({ input, log }) {
        for (let line = 1; line <= input; line += 1) log(`line ${line}`);
      },
    });
    await using app = await start(clock, bed.store(), [job]);
    for (const lines of [200, 250]) {
      const { id } = await app.enqueue(job, lines);
      await clock.advance(1_000);
      await app.runUntilIdle();
      const texts = (await app.trail(id)).map(({ text }) => text);
      assert.equal(texts.length, 200);
      assert.deepEqual([texts[0], texts.at(-1)], [`line ${lines - 199}`, `line ${lines}`]);
    }
  });

  test("progress that cannot be kept is told once for each job, and what was kept stays", async () => {
    const clock = new VirtualClock();
    const job = defineJob<null>({
      name: "job",
      run({ progress, log }) {
        progress({ percent: 10 });
        progress(1n);
        progress("x".repeat(5_000_000));
        progress({ rate: 0 / 0 });
        log({ percent: 10 } as unknown as string);
      },
    });
    const warnings: string[] = [];
    const log = { ...silentLogger, warn: (_: object, line: string) => void warnings.push(line) };
    await using app = new TestEscapement({ store: bed.store(), jobs: [job], log }, clock);
    await app.start();
    for (const id of ["first", "second"]) await app.enqueue(job, null, { id });
    await app.runUntilIdle();
    assert.deepEqual((await app.get("first"))?.progress, { percent: 10 });
    assert.deepEqual(
      (await app.trail("first")).map(({ text }) => text),
      ["{ percent: 10 }"],
    );
    assert.deepEqual(
      warnings.toSorted().map((line) => line.slice(0, line.indexOf(" ("))),
      ["first", "second"].map((id) => `progress of job "${id}" is not kept: it cannot be written as JSON`),
    );
  });

  test("a job that reports nothing does not wait for the reports of others", async () => {
    const clock = new VirtualClock();
    const { store, calls } = slowly(bed.store(), clock);
    const ended: number[] = [];
    const quiet = defineJob<null>({ name: "quiet", run: () => {} });
    const chatty = defineJob<null>({
      name: "chatty",
      async run({ log }) {
        log("at work");
        await sleep(clock, 1_000);
      },
    });
    await using app = await start(clock, store, [quiet, chatty]);
    app.on("succeeded", ({ job: { name } }) => void (name === "quiet" && ended.push(clock.monotonic())));
    await app.enqueue(quiet, null);
    await clock.advance(100);
    assert.equal(calls.report, 0, "nothing was reported");
    await app.enqueue(chatty, null);
    await clock.settle();
    await app.enqueue(quiet, null);
    await clock.advance(100);
    assert.equal(calls.report, 0, "only the clock makes a report of a job that still runs");
    assert.equal(ended.length, 2);
    await clock.advance(5_000);
    assert.equal(calls.report, 1);
  });

  /** Jobs at once, each of which does this in its `tx`. */
  async function inTransactions(
    app: TestEscapement,
    clock: VirtualClock,
    job: JobDefinition<number>,
  ): Promise<string[]> {
    const inputs = Array.from({ length: 30 }, (_, n) => ({ input: n }));
    const ids = (await app.enqueueMany(job, inputs)).map(({ id }) => id);
    await clock.advance(5_000);
    assert.equal(await app.count({ states: ["succeeded"] }), 30);
    return ids;
  }

  const noAwait = bed.noAwaitInTransactions;
  for (const [kind, { skip, fn }] of Object.entries({
    "a synchronous": { skip: bed.noTransactions, fn: (report: () => void) => report() },
    "an asynchronous": { skip: noAwait, fn: async (report: () => void) => report() },
  })) {
    test(`what ${kind} function given to tx logs last is kept`, { skip }, async () => {
      const clock = new VirtualClock();
      const job = defineJob<number>({
        name: "job",
        delivery: "effectively-once",
        async run({ input, tx, log, progress }) {
          await sleep(clock, 1_000 + (input % 7));
          log("before");
          await tx(() =>
            fn(() => {
              log("inside");
              progress(100);
            }),
          );
        },
      });
      // Not slowly: time stands still while a transaction is on its way.
      await using app = await start(clock, bed.store(), [job]);
      const ids = await inTransactions(app, clock, job);
      await assertAllKept(app, ids, "inside");
      const trails = await Promise.all(ids.map((id) => app.trail(id)));
      const kept = trails.map((trail) => trail.map(({ text }) => text));
      assert.deepEqual(
        kept,
        ids.map(() => ["before", "inside"]),
      );
    });
  }

  test("what a handler logs while its tx waits to begin is kept", { skip }, async () => {
    const clock = new VirtualClock();
    const { store: inner } = slowly(bed.store(), clock);
    const store: StoreFactory = {
      async open(context) {
        const opened = await inner.open(context);
        return override(opened, {
          async transact(params) {
            await sleep(clock, 300);
            return opened.transact(params);
          },
        });
      },
    };
    const job = defineJob<number>({
      name: "job",
      delivery: "effectively-once",
      async run({ input, tx, log, progress }) {
        const ending = tx(() => "done");
        // Reports travel every 200 ms: one is gathered when the function is called, the other on its way.
        await sleep(clock, input % 2 === 0 ? 98 : 290);
        log("beside");
        progress(100);
        await ending;
      },
    });
    await using app = await start(clock, store, [job]);
    await assertAllKept(app, await inTransactions(app, clock, job), "beside");
  });

  test("what the function given to tx logs is kept when that is rolled back", { skip }, async () => {
    const clock = new VirtualClock();
    const job = defineJob<number>({
      name: "job",
      delivery: "effectively-once",
      async run({ tx, log, progress }) {
        const fails = tx(() => {
          log("rolled back");
          progress(100);
          throw new Error("as planned");
        });
        await assert.rejects(fails, /as planned/);
        await tx(() => "done");
      },
    });
    await using app = await start(clock, slowly(bed.store(), clock).store, [job]);
    await assertAllKept(app, await inTransactions(app, clock, job), "rolled back");
  });

  test("what a commit that failed was to write is kept", { skip }, async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const failed = new Set<string>();
    const store: StoreFactory = {
      async open(context) {
        const opened = await inner.open(context);
        return override(opened, {
          async transact(params) {
            const report = (): Report | null => {
              const reported = params.report?.() ?? null;
              if (failed.has(params.id)) return reported;
              failed.add(params.id);
              throw new Error("as planned");
            };
            return opened.transact({ ...params, report });
          },
        });
      },
    };
    const job = defineJob<number>({
      name: "job",
      delivery: "effectively-once",
      async run({ tx, log, progress }) {
        const fails = tx(() => {
          log("inside");
          progress(100);
        });
        await assert.rejects(fails, /as planned/);
        await tx(() => "done");
      },
    });
    await using app = await start(clock, store, [job]);
    await assertAllKept(app, await inTransactions(app, clock, job), "inside");
  });
});
