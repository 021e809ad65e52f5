import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/clock.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createTestEscapement, TestEscapement } from "../../src/testing/kit.ts";
import { override } from "../../src/testing/override.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { onEveryStore } from "./stores.ts";

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

const leaseMs = 30_000;

onEveryStore("late answers", (bed) => {
  for (const share of [0.3, 0.5, 0.65, 0.79, 0.9, 1.2]) {
    test(`a claim whose answer took ${share} of its lease runs once, and its handler is not stopped`, async () => {
      const clock = new VirtualClock();
      const inner = bed.store();
      let lateMs = 0;
      const store: StoreFactory = {
        async open(context) {
          const opened = await inner.open(context);
          return override(opened, {
            async step(params) {
              const answer = await opened.step(params);
              if (answer.claimed.jobs.length > 0 && lateMs > 0) {
                const waitMs = lateMs;
                lateMs = 0;
                await sleep(clock, waitMs);
              }
              return answer;
            },
          });
        },
      };
      const starts: string[] = [];
      const define = (name: string, delivery: "at-most-once" | "at-least-once") =>
        defineJob<null>({
          name,
          delivery,
          async run({ job, signal }) {
            starts.push(job.id);
            await sleep(clock, 2 * leaseMs, signal);
            signal.throwIfAborted();
          },
        });
      const jobs = [define("once", "at-most-once"), define("again", "at-least-once")];
      await using app = new TestEscapement({ store, jobs, lease: leaseMs, log: silentLogger }, clock);
      await app.start({ roles: ["worker", "planner"] });
      await clock.advance(100);
      lateMs = share * leaseMs;
      for (const { name } of jobs) await app.enqueue(name, null, { id: name });
      await clock.advance(5 * leaseMs);
      assert.deepEqual(starts.toSorted(), ["again", "once"]);
      const { jobs: ended } = await app.list();
      assert.deepEqual(
        ended.map(({ state, crashes, attempt }) => [state, crashes, attempt]),
        [
          ["succeeded", 0, 1],
          ["succeeded", 0, 1],
        ],
      );
    });
  }
});
