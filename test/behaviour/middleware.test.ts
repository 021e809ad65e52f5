import assert from "node:assert/strict";
import { test } from "node:test";
import { newReceived } from "../../src/consumer/test/memory-source.ts";
import { stage } from "../../src/consumer/test/stage.ts";
import { createEscapement, defineJob, type Middleware, snooze } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createTestEscapement } from "../../src/testing/kit.ts";
import { until } from "../../src/testing/transports/scene.ts";

const noted =
  (told: string[], who: string): Middleware =>
  async ({ job }, next) => {
    told.push(`${who} before ${job.name}`);
    const value = await next();
    told.push(`${who} after ${JSON.stringify(value)}`);
  };

test("middleware runs around an inline handler, in order, and the handler's result stays the job's", async () => {
  const told: string[] = [];
  const job = defineJob<number>({
    name: "double",
    run: ({ input }) => {
      told.push("handler");
      return input * 2;
    },
  });
  const app = createEscapement({
    store: memory(),
    jobs: [job],
    middleware: [noted(told, "outer")],
    log: silentLogger,
  });
  app.use(noted(told, "inner"));
  await using _ = app;
  await app.start();
  const receipt = await app.enqueue(job, 21);
  assert.equal(await app.result(receipt), 42);
  assert.deepEqual(told, [
    "outer before double",
    "inner before double",
    "handler",
    "inner after 42",
    "outer after 42",
  ]);
  assert.throws(() => app.use(noted(told, "late")), { code: "already-started" });
});

test("middleware runs around a handler in a thread", async () => {
  const told: string[] = [];
  const job = defineJob<{ how: string }>({
    name: "threaded",
    run: new URL("../handlers/work.ts", import.meta.url),
  });
  await using app = createEscapement({ store: memory(), jobs: [job], log: silentLogger });
  app.use(noted(told, "it"));
  await app.start();
  const receipt = await app.enqueue(job, { how: "return" }, { id: "t" });
  assert.deepEqual(await app.result(receipt), { how: "return", id: "t" });
  assert.deepEqual(told, ["it before threaded", 'it after {"how":"return","id":"t"}']);
});

test("middleware runs around a consumer's handlers, and what it throws is a failed attempt", async () => {
  const told: string[] = [];
  let tries = 0;
  const job = defineJob<string>({
    name: "work",
    retry: { attempts: 2, backoff: { delay: 1 } },
    run: () => void told.push("handler"),
  });
  const flaky: Middleware = (_, next) => {
    tries += 1;
    if (tries === 1) throw new Error("not yet");
    return next();
  };
  await using scene = await stage({ jobs: [job], middleware: [noted(told, "outer"), flaky] });
  await scene.source.send(newReceived("work", "x"));
  await until("it is handled", () => scene.source.acked.length === 1);
  assert.deepEqual(told, ["outer before work", "outer before work", "handler", "outer after undefined"]);
  assert.equal(scene.consumer.counts.failed, 1);
});

const wrongs: readonly { readonly what: string; readonly layer: Middleware; readonly error: RegExp }[] = [
  {
    what: "throws",
    layer: () => {
      throw new Error("no tenant");
    },
    error: /no tenant/,
  },
  {
    what: "throws after the handler has succeeded",
    layer: async (_, next) => {
      await next();
      throw new Error("not recorded");
    },
    error: /not recorded/,
  },
  {
    what: "calls next twice, and swallows what that throws",
    layer: async (_, next) => {
      await next();
      await next().catch(() => {});
    },
    error: /called next twice/,
  },
  { what: "never calls next", layer: async () => {}, error: /did not call next/ },
  {
    what: "calls next twice and returns a value",
    layer: async (_, next) => {
      await next();
      await next().catch(() => {});
      return "fine";
    },
    error: /called next twice/,
  },
];

for (const { what, layer, error } of wrongs) {
  test(`a middleware that ${what} fails the job`, async () => {
    const job = defineJob({ name: "work", retry: { attempts: 1 }, run: () => "done" });
    await using app = await createTestEscapement({ jobs: [job], middleware: [layer], log: silentLogger });
    const { id } = await app.enqueue(job);
    await app.runUntilIdle();
    const { state, error: kept } = (await app.get(id)) ?? {};
    assert.equal(state, "dead");
    assert.match(kept?.message ?? "", error);
  });
}

test("a handler's failure that a middleware swallows is still the job's failure", async () => {
  const job = defineJob({
    name: "work",
    retry: { attempts: 1 },
    run: () => {
      throw new Error("from the handler");
    },
  });
  const swallow: Middleware = async (_, next) => {
    await next().catch(() => {});
  };
  await using app = await createTestEscapement({ jobs: [job], middleware: [swallow], log: silentLogger });
  const { id } = await app.enqueue(job);
  await app.runUntilIdle();
  assert.equal((await app.get(id))?.error?.message, "from the handler");
});

test("a middleware may answer in place of the handler: with a result, or with a snooze", async () => {
  let runs = 0;
  let isSuspended = true;
  const job = defineJob<string>({
    name: "work",
    run: () => {
      runs += 1;
      return "worked";
    },
  });
  const gate: Middleware = async ({ input }, next) => {
    if (input === "cached") return "from the cache";
    if (isSuspended) return snooze("1m");
    return next();
  };
  await using app = await createTestEscapement({ jobs: [job], middleware: [gate], log: silentLogger });
  const cached = await app.enqueue(job, "cached");
  const other = await app.enqueue(job, "other");
  await app.runUntilIdle();
  assert.equal((await app.get(cached))?.result, "from the cache");
  assert.equal((await app.get(other))?.state, "waiting");
  isSuspended = false;
  await app.advance("2m");
  assert.equal((await app.get(other))?.result, "worked");
  assert.equal(runs, 1);
});

test("a snooze of the handler passes through a middleware that returns nothing", async () => {
  let tries = 0;
  const job = defineJob({
    name: "work",
    run: () => {
      tries += 1;
      return tries === 1 ? snooze("1m") : "worked";
    },
  });
  const told: string[] = [];
  await using app = await createTestEscapement({ jobs: [job], middleware: [noted(told, "it")] });
  const { id } = await app.enqueue(job);
  await app.runUntilIdle();
  assert.equal((await app.get(id))?.state, "waiting");
  await app.advance("2m");
  assert.equal((await app.get(id))?.result, "worked");
});

test("a job's slot is held until its handler has settled, also where a middleware does not wait for it", async () => {
  const started = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const job = defineJob({
    name: "work",
    run: async () => {
      started.resolve();
      await go.promise;
      return "worked";
    },
  });
  const hasty: Middleware = async (_, next) => {
    void next();
  };
  await using app = createEscapement({
    store: memory(),
    jobs: [job],
    middleware: [hasty],
    log: silentLogger,
  });
  await app.start();
  const receipt = await app.enqueue(job);
  await started.promise;
  assert.equal((await app.get(receipt))?.state, "active");
  go.resolve();
  assert.equal(await app.result(receipt), "worked");
});

test("what is no middleware is refused", () => {
  const middleware = ["trace"] as unknown as Middleware[];
  assert.throws(() => createEscapement({ store: memory(), middleware }), { code: "invalid-option" });
  const app = createEscapement({ store: memory() });
  assert.throws(() => app.use(undefined as unknown as Middleware), { code: "invalid-option" });
});
