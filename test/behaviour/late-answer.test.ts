import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob } from "../../src/index.ts";
import type { StoreFactory } from "../../src/store.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createTestEscapement } from "../../src/testing/kit.ts";

test("a notice that overtakes the answer to an older claim is not forgotten: the job runs at once", async () => {
  const inner = memory();
  let answerLater: Promise<void> = Promise.resolve();
  const store: StoreFactory = {
    async open(context) {
      const opened = await inner.open(context);
      return new Proxy(opened, {
        get(_, key) {
          const value: unknown = Reflect.get(opened, key, opened);
          if (key !== "step") return typeof value === "function" ? value.bind(opened) : value;
          return async (params: Parameters<typeof opened.step>[0]) => {
            const answer = await opened.step(params);
            await answerLater;
            return answer;
          };
        },
      });
    },
  };
  const runs: string[] = [];
  const job = defineJob({ name: "job", run: ({ job: { id } }) => void runs.push(id) });
  await using app = await createTestEscapement({ store, jobs: [job] });
  const { promise, resolve } = Promise.withResolvers<void>();
  answerLater = promise;
  await app.advance("1s");
  await app.enqueue(job, undefined);
  await app.clock.settle();
  resolve();
  await app.clock.settle();
  await app.runUntilIdle();
  assert.equal(runs.length, 1);
});
