import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { createEscapement, defineJob, type EnqueueOptions, type ErrorCode } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createTestEscapement, TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

const job = defineJob<unknown>({ name: "job" });
const typed = defineJob({ name: "typed", input: z.object({ n: z.number() }) });
const dated = defineJob({ name: "dated", input: z.object({ due: z.object({ at: z.date() }) }) });

onEveryStore("bad input", (bed) => {
  const refused: [
    string,
    ErrorCode,
    RegExp,
    (app: Awaited<ReturnType<typeof bed.app>>) => Promise<unknown>,
  ][] = [
    [
      "unknown option",
      "invalid-option",
      /unknown option "dealy" of enqueue/,
      (app) => app.enqueue(job, 1, { dealy: 5 } as EnqueueOptions),
    ],
    [
      "negative duration",
      "invalid-duration",
      /expected delay to be a duration/,
      (app) => app.enqueue(job, 1, { delay: -5 }),
    ],
    [
      "invalid date",
      "invalid-option",
      /expected runAt to be a valid Date, got an invalid Date/,
      (app) => app.enqueue(job, 1, { runAt: new Date("x") }),
    ],
    [
      "delay and runAt",
      "invalid-option",
      /mutually exclusive/,
      (app) => app.enqueue(job, 1, { delay: 1, runAt: new Date() }),
    ],
    ["bigint", "input-not-serialisable", /cannot be written as JSON/, (app) => app.enqueue(job, 1n)],
    ["function", "input-not-serialisable", /it is a function/, (app) => app.enqueue(job, () => {})],
    ["NaN", "input-not-serialisable", /would lose NaN;/, (app) => app.enqueue(job, Number.NaN)],
    [
      "Map inside",
      "input-not-serialisable",
      /would lose a Map at "orders\.0"; convert that, or leave it out/,
      (app) => app.enqueue(job, { orders: [new Map([["a", 1]])] }),
    ],
    [
      "Set among many",
      "input-not-serialisable",
      /would lose a Set at "tags"/,
      (app) => app.enqueueMany(job, [{ input: 1 }, { input: { tags: new Set(["a"]) } }]),
    ],
    [
      "cycle",
      "input-not-serialisable",
      /circular/i,
      (app) => {
        const cycle: { self?: unknown } = {};
        cycle.self = cycle;
        return app.enqueue(job, cycle);
      },
    ],
    ["oversized", "input-too-large", /1048576 are allowed/, (app) => app.enqueue(job, "x".repeat(1_048_577))],
    ["schema", "invalid-input", /n: /, (app) => app.enqueue(typed, { n: "1" } as never)],
    [
      "a Date where the schema takes nothing else",
      "invalid-input",
      /due\.at: .* \(inputs travel as JSON, where a Date is a string: .* z\.coerce\.date\(\)\)$/,
      (app) => app.enqueue(dated, { due: { at: new Date(0) } }),
    ],
    ["unknown name", "unknown-job", /"nobody" is not a job/, (app) => app.enqueue("nobody", 1)],
    [
      "empty id",
      "invalid-id",
      /expected id to be a string of 1 to 255/,
      (app) => app.enqueue(job, 1, { id: "" }),
    ],
    [
      "id with a line break",
      "invalid-id",
      /without control characters/,
      (app) => app.enqueue(job, 1, { id: "a\nb" }),
    ],
    ["long id", "invalid-id", /255/, (app) => app.enqueue(job, 1, { id: "x".repeat(256) })],
    ["queue name", "invalid-name", /name of a queue/, (app) => app.pauseQueue("a\nb")],
    [
      "fractional priority",
      "invalid-option",
      /whole number/,
      (app) => app.enqueue(job, 1, { priority: 1.5 }),
    ],
    [
      "misspelt filter",
      "invalid-option",
      /unknown option "state" of a filter/,
      (app) => app.cancel({ state: ["dead"] } as object),
    ],
    [
      "unknown option of cancel",
      "invalid-option",
      /unknown option "reson" of cancel/,
      (app) => app.cancel("x", { reson: "typo" } as object),
    ],
    [
      "unknown option of stop",
      "invalid-option",
      /unknown option "timeot" of stop/,
      (app) => app.stop({ timeot: 1 } as object),
    ],
    ["half a surrogate pair", "invalid-id", /surrogate/, (app) => app.enqueue(job, 1, { id: "\ud800" })],
    [
      "a cancel of everything by mistake",
      "invalid-option",
      /expected ids to be given/,
      (app) => app.cancel({ ids: undefined } as object),
    ],
    [
      "a cancel of everything by an empty list of tags",
      "invalid-option",
      /expected tags to be given/,
      (app) => app.cancel({ tags: [], states: ["waiting"] }),
    ],
    ["a redrive of everything by mistake", "invalid-option", /a condition/, (app) => app.redrive({})],
    [
      "wrong state",
      "invalid-option",
      /states of a filter/,
      (app) => app.list({ states: ["completed" as never] }),
    ],
    [
      "wrong concurrency",
      "invalid-option",
      /concurrency/,
      (app) => app.configureQueue("q", { concurrency: 0 }),
    ],
    ...["", 0, false].map((rate): (typeof refused)[number] => [
      `rate ${JSON.stringify(rate)}`,
      "invalid-option",
      /expected the options of rate to be an object, got/,
      (app) => app.configureQueue("q", { rate: rate as never }),
    ]),
    [
      "wrong paused",
      "invalid-option",
      /expected paused to be true or false, got ""/,
      (app) => app.configureQueue("q", { paused: "" } as object),
    ],
    ["second start", "already-started", /already started/, (app) => app.start()],
    ["tick of a started app", "already-started", /call tick instead of start$/, (app) => app.tick()],
  ];

  test("each gets one clear error with a code, and nothing is written", async () => {
    await using app = await bed.app({ jobs: [typed] });
    for (const [what, code, message, call] of refused) {
      await assert.rejects(call(app), { name: "EscapementError", code, message }, what);
    }
    assert.equal(await app.count(), 0);
  });

  for (const delivery of ["at-most-once", "at-least-once"] as const) {
    const define = (input: z.ZodType, runs: string[]) =>
      defineJob({ name: "changed", delivery, input, run: ({ job: { id } }) => void runs.push(id) });

    test(`a stored input that only newer nodes can read is left to them (${delivery})`, async () => {
      const clock = new VirtualClock();
      const store = bed.store();
      const runs: string[] = [];
      const newer = define(z.object({ n: z.number() }), runs);
      const older = define(z.object({ n: z.string() }), runs);
      await using oldNode = await createTestEscapement({ store, clock, jobs: [older], log: silentLogger });
      const newNode = new TestEscapement({ store, jobs: [newer], log: silentLogger }, clock);
      const { id } = await newNode.enqueue(newer, { n: 1 });
      await clock.advance(60_000);
      const waiting = await oldNode.get(id);
      assert.deepEqual([waiting?.state, waiting?.attempt, waiting?.crashes], ["waiting", 0, 0]);
      assert.match(waiting?.error?.message ?? "", /does not fit its schema/);
      await newNode.start();
      await oldNode.stop();
      await clock.advance(60_000);
      assert.deepEqual(runs, [id]);
      const done = await newNode.get(id);
      assert.deepEqual([done?.state, done?.attempt], ["succeeded", 1]);
      await newNode.stop();
    });

    test(`an input that nobody can read is dead in the end, with the reason (${delivery})`, async () => {
      const clock = new VirtualClock();
      const store = bed.store();
      const runs: string[] = [];
      const older = define(z.object({ n: z.string() }), runs);
      await using app = await createTestEscapement({ store, clock, jobs: [older], log: silentLogger });
      const sender = new TestEscapement({ store, log: silentLogger }, clock);
      const { id } = await sender.enqueue(define(z.object({ n: z.number() }), runs), { n: 1 });
      await clock.advance(12 * 60_000);
      const dead = await app.get(id);
      assert.deepEqual([dead?.state, dead?.attempt, runs], ["dead", 1, []]);
      assert.match(dead?.reason ?? "", /did not fit the schema for 10 minutes/);
      assert.match(dead?.error?.message ?? "", /does not fit its schema/);
      await sender.stop();
    });
  }

  test("use after stop is refused, stopping twice is not", async () => {
    const app = await bed.app({ jobs: [job] });
    await app.stop();
    await app.stop();
    for (const call of [
      () => app.enqueue(job, 1),
      () => app.start(),
      () => app.get("x"),
      () => app.count(),
    ]) {
      await assert.rejects(call, { code: "stopped" });
    }
  });
});

test("definitions with nonsense are refused when they are made", () => {
  const bad: [object, RegExp][] = [
    [{ name: "" }, /the name of a job/],
    [{ name: "a", quue: "x" }, /unknown option "quue" of defineJob/],
    [{ name: "a", delivery: "exactly-once" }, /delivery of job "a" to be one of/],
    [{ name: "a", timeout: "soon" }, /timeout of job "a" to be a duration/],
    [{ name: "a", retry: { attempts: 0 } }, /retry.attempts of job "a"/],
    [{ name: "a", retry: { backof: {} } }, /unknown option "backof"/],
    [{ name: "a", concurrency: { limit: 0 } }, /concurrency.limit/],
    [{ name: "a", rate: { limit: 5, per: 0 } }, /rate.per/],
    [{ name: "a", unique: { key: String, for: 0 } }, /unique.for of job "a" to be a number from 1/],
    [
      { name: "a", retry: { backoff: { delay: "1m", max: "1s" } } },
      /retry.backoff.max of job "a" to be at least retry.backoff.delay \(60000\), got 1000/,
    ],
    [{ name: "a", unique: { key: "x", for: "pending" } }, /unique.key of job "a" to be a function/],
    [{ name: "a", input: {} }, /Standard Schema/],
    [{ name: "a", run: "handler.js" }, /a function or the URL/],
    [{ name: "a", timeout: 0 }, /timeout of job "a"/],
    [{ name: "a", debounce: { key: String, wait: 10, max: 5 } }, /debounce.max of job "a" to be at least/],
    [
      { name: "a", unique: { key: String, for: 1 }, debounce: { key: String, wait: 1 } },
      /mutually exclusive/,
    ],
  ];
  for (const [options, message] of bad) assert.throws(() => defineJob(options as { name: string }), message);
});

test("apps with nonsense are refused when they are made, or when they would first need it", async () => {
  assert.throws(() => createEscapement({ jobs: [job, job] }), { code: "duplicate-definition" });
  assert.throws(() => createEscapement({ store: 5 as never }), { code: "invalid-option" });
  assert.throws(() => createEscapement({ jobs: [undefined] as never }), { code: "invalid-option" });
  assert.throws(() => createEscapement({ jobs: "abc" as never }), { code: "invalid-option" });
  assert.throws(() => createEscapement({ log: {} as never }), { code: "invalid-option" });
  const app = createEscapement({ store: "mongodb://user:secret@host/db", log: silentLogger });
  await assert.rejects(app.count(), (error: Error) => {
    assert.match(error.message, /expected store to be a URL that starts with sqlite:/);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
  for (const [query, message] of [
    ["durability=none", /durability/],
    ["cache=shared", /unknown option "cache"/],
  ] as const) {
    const odd = createEscapement({ store: `sqlite::memory:?${query}`, log: silentLogger });
    await assert.rejects(odd.count(), { code: "invalid-option", message });
  }
  await using weak = createEscapement({ store: "sqlite::memory:?durability=normal", log: silentLogger });
  assert.equal(await weak.count(), 0);
  const other = createEscapement({ store: memory(), log: silentLogger });
  await assert.rejects(other.start({ roles: ["boss" as never] }), {
    code: "invalid-option",
    message: /roles/,
  });
  await assert.rejects(other.start({ rolls: [] } as object), { code: "invalid-option" });
});
