import assert from "node:assert/strict";
import type { Success } from "../../state.ts";
import type { Report, TransactParams } from "../../store/claims.ts";
import type { EnqueueResult } from "../../store/jobs.ts";
import { leaseMs } from "./claimer.ts";
import { type ConformanceTest, newJob, type Scene, succeed } from "./scene.ts";

const needs = {
  capability: "transactions",
  because: "this store has no transactions of the caller's own (capabilities.transactions is false)",
} as const;

const encode = (value: unknown): Success => ({ kind: "succeed", result: JSON.stringify(value) });

/** A claimed job with what `transact` needs to know of it. */
async function held(scene: Scene) {
  await scene.add(newJob("a", { delivery: "effectively-once" }));
  const claimer = scene.claimer();
  const { id, token } = await claimer.one();
  return { claimer, claim: { claimer: claimer.id, id, token, encode } };
}

export function transactTests(test: ConformanceTest): void {
  test(
    "what the caller's function returns is the job's result, and its success is written with it",
    async (scene) => {
      const { claim, claimer } = await held(scene);
      const answer = await scene.store.transact({ ...claim, run: () => ({ sum: 42 }) });
      assert.deepEqual(answer, { outcome: "committed", value: { sum: 42 } });
      const job = await scene.job("a");
      assert.deepEqual([job.state, job.result], ["succeeded", '{"sum":42}']);
      assert.deepEqual(await claimer.finish(claim, succeed), { outcome: "repeated", state: "succeeded" });
    },
    needs,
  );

  test(
    "a result that is left out is a success with its reason, also inside a transaction",
    async (scene) => {
      const { claim } = await held(scene);
      const outcome = { kind: "succeed", result: null, notKept: "result not kept: too long" } as const;
      const answer = await scene.store.transact({ ...claim, encode: () => outcome, run: () => 42 });
      assert.deepEqual(answer, { outcome: "committed", value: 42 });
      const job = await scene.job("a");
      assert.deepEqual([job.state, job.result, job.reason], ["succeeded", null, outcome.notKept]);
      assert.deepEqual(
        (await scene.trail("a")).map(({ kind, text }) => [kind, text]),
        [["result-not-kept", outcome.notKept]],
      );
    },
    needs,
  );

  test(
    "what the job has reported is written with its success, and with nothing else",
    async (scene) => {
      const { claim } = await held(scene);
      const reported = { progress: '{"percent":100}', lines: ["one", "two's \\ \u00e9"] };
      const lines = async (): Promise<unknown> => [
        (await scene.job("a")).progress,
        ...(await scene.trail("a")).map(({ kind, text }) => [kind, text]),
      ];
      const fails = (): never => {
        throw new Error("the caller's own");
      };
      const report = (): Report => reported;
      await assert.rejects(scene.store.transact({ ...claim, report, run: fails }), /the caller's own/);
      assert.deepEqual(await lines(), [null]);
      const stale = { ...claim, token: claim.token + 1, report, run: () => 1 };
      assert.deepEqual(await scene.store.transact(stale), { outcome: "stale" });
      assert.deepEqual(await lines(), [null]);
      await scene.store.transact({ ...claim, report, run: () => 1 });
      assert.equal((await scene.job("a")).state, "succeeded");
      assert.deepEqual(await lines(), [reported.progress, ...reported.lines.map((line) => ["log", line])]);
    },
    needs,
  );

  test(
    "a function that throws rolls everything back and leaves the claim as it was",
    async (scene) => {
      const { claim } = await held(scene);
      const failure = new Error("the caller's own");
      const added: Promise<EnqueueResult[]>[] = [];
      const run = (tx: unknown): never => {
        added.push(scene.store.enqueue({ jobs: [newJob("child")], tx }));
        throw failure;
      };
      await assert.rejects(scene.store.transact({ ...claim, run }), (thrown) => thrown === failure);
      await Promise.allSettled(added);
      assert.deepEqual(await scene.states("a", "child"), ["active", null]);
      assert.equal((await scene.store.transact({ ...claim, run: () => 1 })).outcome, "committed");
    },
    needs,
  );

  test(
    "the function may enqueue by what it is given, awaited or not; it commits and is undone with the rest",
    async (scene) => {
      const { claim } = await held(scene);
      const failure = new Error("the caller's own");
      const answers: unknown[] = [];
      const enqueueing = (ends: () => number): TransactParams<number>["run"] => {
        return (_tx, enqueue) => {
          const results = enqueue([newJob("c1"), newJob("c2", { after: ["c1"] }), newJob("c1")]);
          const keep = (some: readonly EnqueueResult[]): void => {
            answers.push(some.map(({ outcome }) => outcome));
          };
          if (!(results instanceof Promise)) {
            keep(results);
            return ends();
          }
          return results.then(keep).then(ends);
        };
      };
      const fails = (): never => {
        throw failure;
      };
      await assert.rejects(
        scene.store.transact({ ...claim, run: enqueueing(fails) }),
        (thrown) => thrown === failure,
      );
      assert.deepEqual(await scene.states("a", "c1", "c2"), ["active", null, null]);
      const answer = await scene.store.transact({ ...claim, run: enqueueing(() => 1) });
      assert.equal(answer.outcome, "committed");
      assert.deepEqual(await scene.states("a", "c1", "c2"), ["succeeded", "waiting", "blocked"]);
      const expected = ["added", "added", "existing"];
      assert.deepEqual(answers, [expected, expected]);
    },
    needs,
  );

  test(
    "jobs enqueued with the transaction exist when it commits, and not before",
    async (scene) => {
      const { claim } = await held(scene);
      const added: Promise<EnqueueResult[]>[] = [];
      const run = (tx: unknown): number => {
        added.push(
          scene.store.enqueue({ jobs: [newJob("c1"), newJob("c2", { after: ["c1"] }), newJob("c1")], tx }),
        );
        return 1;
      };
      assert.equal((await scene.store.transact({ ...claim, run })).outcome, "committed");
      const [results] = await Promise.all(added);
      assert.deepEqual(
        results?.map(({ outcome }) => outcome),
        ["added", "added", "existing"],
      );
      assert.deepEqual(await scene.states("c1", "c2"), ["waiting", "blocked"]);
    },
    needs,
  );

  test(
    "a stale token rolls all of it back [A7]",
    async (scene) => {
      const { claim } = await held(scene);
      await scene.advance(2 * leaseMs);
      await scene.reapAll();
      const next = scene.claimer("next");
      const again = await next.one();
      const added: Promise<EnqueueResult[]>[] = [];
      const run = (tx: unknown): number => {
        added.push(scene.store.enqueue({ jobs: [newJob("child")], tx }));
        return 1;
      };
      assert.deepEqual(await scene.store.transact({ ...claim, run }), { outcome: "stale" });
      await Promise.allSettled(added);
      assert.deepEqual(await scene.states("a", "child"), ["active", null]);
      assert.equal((await next.finish(again, succeed)).outcome, "written");
    },
    needs,
  );

  test(
    "a transaction repeated after its reply was lost commits nothing more",
    async (scene) => {
      const { claim } = await held(scene);
      await scene.store.transact({ ...claim, run: () => "first" });
      assert.deepEqual(await scene.store.transact({ ...claim, run: () => "second" }), { outcome: "stale" });
      assert.equal((await scene.job("a")).result, '"first"');
    },
    needs,
  );

  test(
    "a success by transaction unblocks children and frees keys like any other",
    async (scene) => {
      const { claim } = await held(scene);
      await scene.add(newJob("child", { after: ["a"] }));
      await scene.store.transact({ ...claim, run: () => null });
      assert.deepEqual(await scene.claimer("next").ids(), ["child"]);
    },
    needs,
  );
}
