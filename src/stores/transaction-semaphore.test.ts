import assert from "node:assert/strict";
import { test } from "node:test";
import { transactionSemaphore } from "./transaction-semaphore.ts";

test("whoever waits in vain is told so, and its place in the line is free", async () => {
  const semaphore = transactionSemaphore(1, 50);
  const { promise, resolve } = Promise.withResolvers<string>();
  const hanging = semaphore.run(() => promise);
  await assert.rejects(
    semaphore.run(async () => "never"),
    { code: "store-busy" },
  );
  resolve("ended");
  assert.equal(await hanging, "ended");
  assert.equal(await semaphore.run(async () => "next"), "next");
});

test("a line that moves is waited in, however long it takes", async () => {
  const semaphore = transactionSemaphore(1, 100);
  const work = () => new Promise<string>((resolve) => setTimeout(resolve, 40, "done"));
  const all = await Promise.all(Array.from({ length: 8 }, () => semaphore.run(work)));
  assert.deepEqual(new Set(all), new Set(["done"]));
});

test("those who wait go in their order, and whoever is inside passes freely", async () => {
  const semaphore = transactionSemaphore(1);
  const order: number[] = [];
  await Promise.all(
    [1, 2, 3].map((n) =>
      semaphore.run(async () => {
        await semaphore.run(async () => void order.push(n));
      }),
    ),
  );
  assert.deepEqual(order, [1, 2, 3]);
});
