import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineJob, type HandlerContext } from "../../src/index.ts";
import { onEveryStore } from "./stores.ts";

const leaf = defineJob({ name: "leaf", run: ({ input }: HandlerContext<{ n: number }>) => input.n });

onEveryStore("what a handler enqueues", (bed) => {
  test("a handler enqueues, and asks for what it enqueued", async () => {
    const root = defineJob({
      name: "root",
      run: async ({ job, enqueue, enqueueMany, get }: HandlerContext<void>) => {
        const receipt = await enqueue(leaf, { n: 1 }, { id: `${job.id}/1` });
        await enqueueMany(leaf, [{ input: { n: 2 } }, { input: { n: 3 } }]);
        return { receipt, state: (await get(receipt))?.state };
      },
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    const enqueued: string[] = [];
    app.on("enqueued", ({ name }) => enqueued.push(name));
    const receipt = await app.enqueue(root, undefined, { id: "r" });
    await app.runUntilIdle();
    const result = await app.result(receipt);
    assert.deepEqual(result.receipt, { id: "r/1", outcome: "added" });
    assert.ok(["waiting", "active", "succeeded"].includes(result.state ?? ""));
    assert.equal(await app.count({ names: ["leaf"], states: ["succeeded"] }), 3);
    assert.deepEqual(enqueued, ["root", "leaf", "leaf", "leaf"]);
  });

  test("what a try enqueued outside of tx stays when it fails, and an id makes it one job", async () => {
    const root = defineJob({
      name: "root",
      retry: { attempts: 2, backoff: { delay: 0 } },
      run: async ({ job, enqueue }: HandlerContext<void>) => {
        await enqueue(leaf, { n: 1 }, { id: `${job.id}/1` });
        await enqueue(leaf, { n: 2 });
        throw new Error("after enqueueing");
      },
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    await app.enqueue(root, undefined, { id: "r" });
    await app.runUntilIdle();
    await app.advance("1s");
    assert.equal((await app.get("r"))?.state, "dead");
    assert.equal(await app.count({ names: ["leaf"] }), 3);
  });

  test("a handler that still runs while its app stops may enqueue", async () => {
    const entered = Promise.withResolvers<void>();
    const root = defineJob({
      name: "root",
      run: async ({ signal, enqueue }: HandlerContext<void>) => {
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await enqueue(leaf, { n: 1 }, { id: "late" });
      },
    });
    const store = bed.store();
    await using app = await bed.app({ store, jobs: [root] });
    await app.enqueue(root);
    await entered.promise;
    await app[Symbol.asyncDispose]();
    await using other = await bed.app({ store, jobs: [leaf] });
    assert.notEqual(await other.get("late"), null);
  });
});

onEveryStore("what a handler enqueues inside tx", (bed) => {
  const skip = bed.noTransactions;
  // SQLite's functions are synchronous; the others take them as well, and asynchronous ones besides.
  const isSynchronous = bed.name === "sqlite";

  test("it commits with the job's success", { skip }, async () => {
    const root = defineJob({
      name: "root",
      run: ({ tx }: HandlerContext<void>) =>
        tx((_db, { enqueue, enqueueMany }) => {
          void enqueue(leaf, { n: 1 }, { id: "one" });
          void enqueueMany(leaf, [{ input: { n: 2 } }, { input: { n: 3 } }]);
          void enqueueMany([{ job: leaf, input: { n: 4 }, after: ["one"] }]);
          return "done";
        }),
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    const receipt = await app.enqueue(root);
    await app.runUntilIdle();
    assert.equal(await app.result(receipt), "done");
    // Nothing announces to every store that the transaction is over.
    await app.advance("1m");
    assert.equal(await app.count({ names: ["leaf"], states: ["succeeded"] }), 4);
  });

  test("it is undone with what else fails", { skip }, async () => {
    const root = defineJob({
      name: "root",
      retry: { attempts: 1 },
      run: ({ tx }: HandlerContext<void>) =>
        tx((_db, { enqueue }) => {
          void enqueue(leaf, { n: 1 });
          throw new Error("after enqueueing");
        }),
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    const { id } = await app.enqueue(root);
    await app.runUntilIdle();
    assert.equal((await app.get(id))?.error?.message, "after enqueueing");
    assert.equal(await app.count({ names: ["leaf"] }), 0);
  });

  test("what cannot be enqueued fails the transaction, also where nobody awaits it", { skip }, async () => {
    const strict = defineJob({ name: "strict", input: z.object({ n: z.number() }) });
    const later = defineJob({ name: "later", input: z.number().refine(async () => true) });
    const wrongs: Record<
      string,
      (jobs: Parameters<Parameters<HandlerContext<void>["tx"]>[0]>[1]) => unknown
    > = {
      "unknown-parent": ({ enqueue }) => enqueue(leaf, { n: 1 }, { after: ["nobody"] }),
      "invalid-input": ({ enqueue }) => enqueue("strict", { n: "text" }),
      "unknown-job": ({ enqueueMany }) => enqueueMany([{ job: "nobody" }]),
      ...(isSynchronous ? { "transaction-unavailable": ({ enqueue }) => enqueue(later, 1) } : {}),
    };
    const root = defineJob({
      name: "root",
      retry: { attempts: 1 },
      run: ({ input, tx }: HandlerContext<string>) =>
        tx((_db, jobs) => {
          void jobs.enqueue(leaf, { n: 1 });
          void wrongs[input]?.(jobs);
        }),
    });
    await using app = await bed.app({ jobs: [root, leaf, strict, later] });
    for (const code of Object.keys(wrongs)) {
      const { id } = await app.enqueue(root, code);
      await app.runUntilIdle();
      const job = await app.get(id);
      assert.deepEqual([job?.state, job?.error?.code], ["dead", code], job?.error?.message);
    }
    assert.equal(await app.count({ names: ["leaf"] }), 0);
  });

  test("the context's own enqueue joins inside, and only there", { skip }, async () => {
    const root = defineJob({
      name: "root",
      retry: { attempts: 1 },
      run: async ({ tx, enqueue }: HandlerContext<void>) => {
        await enqueue(leaf, { n: 1 }, { id: "before" });
        await tx(() => {
          void enqueue(leaf, { n: 2 }, { id: "inside" });
          throw new Error("rolled back");
        });
      },
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    const { id } = await app.enqueue(root);
    await app.runUntilIdle();
    assert.equal((await app.get(id))?.error?.message, "rolled back");
    assert.notEqual(await app.get("before"), null);
    assert.equal(await app.get("inside"), null);
  });

  test("an asynchronous function may await it", {
    skip: skip || (isSynchronous && "functions are synchronous"),
  }, async () => {
    const late: unknown[] = [];
    const root = defineJob({
      name: "root",
      run: async ({ tx, enqueue }: HandlerContext<void>) => {
        let leaked: () => unknown = () => null;
        const opened = Promise.withResolvers<void>();
        const besides = opened.promise.then(() => enqueue(leaf, { n: 8 }));
        const value = await tx(async (_db, jobs) => {
          leaked = () => jobs.enqueue(leaf, { n: 9 });
          opened.resolve();
          // Code that runs beside the transaction does not become part of it, and need not wait for it.
          await besides;
          const receipts = await Promise.all([1, 2, 3].map((n) => enqueue(leaf, { n })));
          return receipts.map(({ outcome }) => outcome);
        });
        assert.throws(leaked, { code: "transaction-used" });
        late.push(value);
      },
    });
    await using app = await bed.app({ jobs: [root, leaf] });
    await app.enqueue(root);
    await app.runUntilIdle();
    await app.advance("1m");
    assert.deepEqual(late, [["added", "added", "added"]]);
    assert.equal(await app.count({ names: ["leaf"], states: ["succeeded"] }), 4);
  });
});
