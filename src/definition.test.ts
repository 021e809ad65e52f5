import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { createEscapement } from "./app/create.ts";
import { defineJob } from "./definition.ts";
import { silentLogger } from "./log.ts";
import { memory } from "./stores/memory/index.ts";

describe("definitions", () => {
  test("what is not said has the defaults of the design", () => {
    const { run: _run, ...plain } = defineJob<null>({ name: "plain" });
    assert.deepEqual(plain, {
      name: "plain",
      schema: null,
      delivery: "at-least-once",
      queue: "default",
      priority: 0,
      concurrency: null,
      rate: null,
      unique: null,
      debounce: null,
      attempts: null,
      backoff: { type: "exponential", delayMs: 30_000, maxMs: 900_000, jitter: 0.1 },
      timeoutMs: null,
      expireInMs: null,
      maxCrashes: null,
      retention: null,
      route: null,
    });
  });

  test("a route is checked, and limits that nobody would keep on the way to a broker are refused [D6]", () => {
    const transport = {
      kind: "test",
      address: "",
      open: () => assert.fail("defining opens nothing"),
    };
    const route = { transport, destination: "topic", dispatchTimeoutMs: 300_000 };
    const key = (input: { customer: string }): string => input.customer;
    const routed = defineJob<{ customer: string }>({ name: "a", route, concurrency: { key, limit: 1 } });
    assert.equal(routed.route, route);
    const define = (options: object) => () => defineJob<null>({ name: "a", route, ...options } as never);
    assert.throws(define({ rate: { limit: 1, per: "1s" } }), { code: "invalid-option" });
    assert.throws(define({ concurrency: { limit: 1 } }), { code: "invalid-option" });
    assert.throws(define({ route: { ...route, dispatchTimeoutMs: 0 } }), { code: "invalid-option" });
    for (const wrong of [null, "kafka", {}, { ...route, destination: "" }]) {
      assert.throws(define({ route: wrong }), { code: "invalid-option" });
    }
  });

  test("a retention of a definition's own is resolved state by state, and what it cannot mean is refused", () => {
    const of = (retention: object) => defineJob<null>({ name: "a", retention }).retention;
    assert.equal(of({}), null);
    const none = { succeededMs: null, cancelledMs: null, deadMs: null, lostMs: null };
    assert.deepEqual(of({ succeeded: "1h" }), { ...none, succeededMs: 3_600_000 });
    assert.deepEqual(of({ cancelled: 0, dead: "2d", lost: 5 }), {
      ...{ succeededMs: null, cancelledMs: 0, deadMs: 172_800_000, lostMs: 5 },
    });
    assert.throws(() => of({ occurrences: "1d" }), {
      code: "invalid-option",
      message: /unknown option "occurrences" of retention of job "a"/,
    });
    assert.throws(() => of({ dead: "soon" }), {
      code: "invalid-duration",
      message: /retention\.dead of job "a"/,
    });
  });

  test("inputs are typed by their definition: what goes in and what the handler sees may differ", async () => {
    const seen: number[] = [];
    const job = defineJob({
      name: "typed",
      input: z.object({ n: z.string().transform(Number) }),
      concurrency: { key: (input) => input.n.toFixed(), limit: 1 },
      run: ({ input }) => void seen.push(input.n),
    });
    await using app = createEscapement({ store: memory(), jobs: [job], log: silentLogger });
    await app.start();
    const { id } = await app.enqueue(job, { n: "42" });
    // @ts-expect-error: the schema takes a text, so a number is refused by the compiler as well as at run time.
    await assert.rejects(app.enqueue(job, { n: 42 }), { code: "invalid-input" });
    // @ts-expect-error: the input is not optional.
    await assert.rejects(app.enqueue(job), { code: "invalid-input" });
    await app.result(id);
    assert.deepEqual(seen, [42]);
  });

  test("an asynchronous schema is awaited, on enqueue and on claim", async () => {
    const job = defineJob({
      name: "async",
      input: z.string().refine(async (text) => text.length > 2),
      run: ({ input }) => input.toUpperCase(),
    });
    await using app = createEscapement({ store: memory(), jobs: [job], log: silentLogger });
    await app.start();
    await assert.rejects(app.enqueue(job, "no"), { code: "invalid-input" });
    const { id } = await app.enqueue(job, "yes");
    assert.equal(await app.result(id), "YES");
  });
});
