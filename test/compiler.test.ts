/** What must compile and what must not. `tsc` judges this file; only what the names of the tests say is run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  createEscapement,
  defineJob,
  type EnqueueReceipt,
  type HandlerContext,
  type JobDefinition,
  snooze,
} from "../src/index.ts";

const app = createEscapement({ store: "memory:", jobs: [] });

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only where the type of the value is exactly `Expected`. */
function holds<Expected>() {
  return <Actual>(_value: Actual, ..._proof: Equal<Actual, Expected> extends true ? [] : [never]): void => {};
}

const greet = defineJob<{ name: string; title?: string }>({ name: "greet" });
const tick = defineJob({ name: "tick", run: async () => {} });
const nothing = defineJob<void>({ name: "nothing" });
const maybe = defineJob<{ a: number } | undefined>({ name: "maybe" });
const double = defineJob({ name: "double", run: ({ input }: HandlerContext<{ n: number }>) => input.n * 2 });
const when = defineJob({
  name: "when",
  input: z.object({ at: z.coerce.date() }),
  run: async ({ input }) => {
    holds<Date>()(input.at);
    if (input.at.getTime() > Date.now()) return snooze("1m");
    return { at: input.at, note: undefined as string | undefined, list: [1n].map(String) };
  },
});

async function inputs(): Promise<void> {
  await app.enqueue(greet, { name: "a", title: "b" });
  // @ts-expect-error a misspelt property
  await app.enqueue(greet, { name: "a", titel: "b" });
  // @ts-expect-error a property is missing
  await app.enqueue(greet, { title: "b" });
  // @ts-expect-error the input is missing
  await app.enqueue(greet);
  // @ts-expect-error a misspelt option
  await app.enqueue(greet, { name: "a" }, { dealy: "1s" });
  await app.enqueueMany(greet, [{ input: { name: "a" }, id: "x" }]);
  // @ts-expect-error a misspelt property
  await app.enqueueMany(greet, [{ input: { name: "a", titel: "b" } }]);
  await app.schedule("k", { cron: "* * * * *" }, greet, { name: "a" });
  // @ts-expect-error a misspelt property
  await app.schedule("k", { cron: "* * * * *" }, greet, { name: "a", titel: "b" });
}

async function noInputs(): Promise<void> {
  await app.enqueue(tick);
  await app.enqueue(tick, undefined, { delay: "1s" });
  await app.enqueue(nothing);
  await app.enqueue(maybe);
  await app.enqueue(maybe, { a: 1 });
  await app.enqueue("tick");
  await app.schedule("k", { cron: "* * * * *" }, tick);
  await app.schedule("k", { cron: "* * * * *" }, nothing, undefined, { priority: 1 });
  await app.enqueueMany(nothing, [{ id: "a" }, {}]);
}

async function results(): Promise<void> {
  const receipt = await app.enqueue(double, { n: 1 });
  holds<EnqueueReceipt<number>>()(receipt);
  holds<number>()(await app.result(receipt));
  holds<unknown>()(await app.result("id"));
  holds<string>()(await app.result<string>("id"));
  holds<null>()(await app.result(await app.enqueue(tick)));
  const kept = await app.result(await app.enqueue(when, { at: "2026-11-15" }));
  holds<string>()(kept.at);
  holds<string | undefined>()(kept.note);
  holds<string[]>()(kept.list);
  holds<number | null | undefined>()((await app.get(receipt))?.result);
  await app.enqueue(tick, undefined, { after: [receipt, "other"] });
  await app.trail(receipt);
  await app.explain(receipt);
  await app.update(receipt, { priority: 1 });
  await app.cancel(receipt);
  await app.cancel([receipt, "other"]);
  await app.redrive(receipt);
}

async function mixed(): Promise<void> {
  const [a, b] = await app.enqueueMany([
    { job: double, input: { n: 1 }, id: "first" },
    { job: tick, after: ["first"] },
  ]);
  holds<EnqueueReceipt<number>>()(a);
  holds<EnqueueReceipt<null>>()(b);
  // @ts-expect-error a misspelt property
  await app.enqueueMany([{ job: greet, input: { name: "a", titel: "b" } }]);
  const first = { job: double, input: { n: 1 } };
  // @ts-expect-error the input of another definition
  await app.enqueueMany([first, { job: greet, input: { n: 1 } }]);
  // @ts-expect-error the input is missing
  await app.enqueueMany([{ job: greet }]);
  const many = [1, 2].map((n) => ({ job: double, input: { n } }));
  holds<EnqueueReceipt<number>[]>()(await app.enqueueMany(many));
  const either = [1, 2].map((n) => (n === 1 ? { job: tick } : { job: "double", input: n }));
  await app.enqueueMany(either);
}

function declared(): void {
  // @ts-expect-error a Date arrives as a string
  defineJob<{ at: Date }>({ name: "x" });
  // @ts-expect-error a Date arrives as a string
  defineJob({ name: "x", run: ({ input }: HandlerContext<{ at: Date }>) => input.at });
  // @ts-expect-error a Map arrives as an empty object
  defineJob<{ deep: { of: Map<string, string> }[] }>({ name: "x" });
  // @ts-expect-error bigints do not go through
  defineJob<bigint>({ name: "x" });
  interface Tree {
    readonly leaf?: string | undefined;
    readonly branches: readonly Tree[];
    readonly any: unknown;
    readonly record: Record<string, number>;
  }
  defineJob<Tree>({ name: "x" });
  defineJob<[a: string, b: null] | "word" | 7>({ name: "x" });
}

const parent = defineJob({
  name: "parent",
  run: async ({ enqueue, enqueueMany, get, tx }: HandlerContext<void>) => {
    holds<EnqueueReceipt<number>>()(await enqueue(double, { n: 1 }));
    // @ts-expect-error a misspelt property
    await enqueue(greet, { name: "a", titel: "b" });
    await enqueueMany(double, [{ input: { n: 1 } }]);
    await get("x");
    return tx(async (_db, jobs) => {
      await jobs.enqueue(tick);
      // @ts-expect-error it has a transaction already
      await jobs.enqueue(tick, undefined, { tx: 1 });
      return 7;
    });
  },
});

async function generic<Input, Result>(job: JobDefinition<Input, Result>, input: Input) {
  const receipt = await app.enqueue(job, input);
  return app.result(receipt);
}

test("definitions whose types are judged here can be made", () => {
  const names = [greet, tick, nothing, maybe, double, when, parent].map(({ name }) => name);
  assert.equal(new Set(names).size, 7);
  assert.ok([inputs, noInputs, results, mixed, declared, generic].every((one) => typeof one === "function"));
});
