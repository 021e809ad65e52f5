import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, EscapementError } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("a store that fails under tx", (bed) => {
  const skip = bed.noTransactions;

  /** An app whose job writes through `tx`, and what becomes of it. */
  async function open(given: {
    delivery?: "effectively-once" | "at-most-once";
    catching?: (error: unknown) => never;
    fn?: () => unknown;
  }) {
    const store = new FaultyStore(bed.store());
    const heard: string[] = [];
    const starts: number[] = [];
    const clock = new VirtualClock();
    const job = defineJob<null>({
      name: "pay",
      delivery: given.delivery ?? "effectively-once",
      async run({ tx }) {
        starts.push(clock.monotonic());
        try {
          await tx(given.fn ?? (() => "paid"));
        } catch (error) {
          if (given.catching !== undefined) given.catching(error);
          throw error;
        }
      },
    });
    const app = new TestEscapement({ store, log: silentLogger, jobs: [job] }, clock);
    for (const event of ["succeeded", "failed", "rolledBack", "dead", "stale"] as const)
      app.on(event, (told) => void heard.push("result" in told ? `${event} ${told.result}` : event));
    await app.start();
    return { app, store, heard, starts, clock, enqueue: () => app.enqueue(job, null, { id: "a" }) };
  }

  test("a transaction that cannot begin is begun again: the handler notices nothing", { skip }, async () => {
    const { app, store, heard, starts, clock, enqueue } = await open({});
    await using _ = app;
    store.fail("refuse", ["transact"], 3);
    await enqueue();
    await clock.advance(5_000);
    assert.deepEqual([heard, starts.length], [["succeeded paid"], 1]);
  });

  test("a commit whose answer is lost is recognised as committed [C1]", { skip }, async () => {
    const { app, store, heard, starts, clock, enqueue } = await open({});
    await using _ = app;
    store.fail("lose-reply", ["transact"], 1);
    await enqueue();
    await clock.advance(5_000);
    assert.deepEqual([heard, starts.length], [["succeeded paid"], 1]);
  });

  test("so it is when the store cannot be asked either, by the outcome that is written next [C1]", {
    skip,
  }, async () => {
    const { app, store, heard, starts, clock, enqueue } = await open({});
    await using _ = app;
    store.fail("lose-reply", ["transact"], 1);
    store.fail("refuse", ["get"]);
    await enqueue();
    await clock.advance(20_000);
    store.heal();
    assert.deepEqual([heard, starts.length], [["succeeded null"], 1]);
    assert.equal((await app.get("a"))?.result, "paid");
  });

  const rethrowing: Readonly<Record<string, ((error: unknown) => never) | undefined>> = {
    "as it is": undefined,
    "as a cause": (error) => {
      throw new Error("cannot save the payment", { cause: error });
    },
  };
  for (const [how, catching] of Object.entries(rethrowing)) {
    test(`a transaction that breaks off uses up no attempt, rethrown ${how}, and the job is back within seconds [A5]`, {
      skip,
    }, async () => {
      const { app, store, heard, starts, clock, enqueue } = await open({
        ...(catching === undefined ? {} : { catching }),
      });
      await using _ = app;
      store.fail("break-off", ["transact"], 3);
      await enqueue();
      await clock.advance(15_000);
      assert.deepEqual(heard, ["rolledBack", "rolledBack", "rolledBack", "succeeded paid"]);
      const job = await app.get("a");
      assert.deepEqual([job?.attempt, job?.rollbacks, job?.crashes], [1, 3, 0]);
      const waits = starts.slice(1).map((at, n) => at - (starts[n] ?? 0));
      for (const [n, ms] of waits.entries())
        assert.ok(ms >= 800 * 2 ** n && ms <= 1_300 * 2 ** n + 1_000, `${ms} ms before try ${n + 2}`);
      const trail = await app.trail("a");
      assert.deepEqual(
        trail.map(({ kind }) => kind),
        ["rolled-back", "rolled-back", "rolled-back"],
      );
      assert.match(trail[0]?.error?.message ?? "", /connection broke|cannot save/);
    });
  }

  test("a store that fails for good is asked now and then, and the job keeps its tries", {
    skip,
  }, async () => {
    const { app, store, starts, clock, enqueue } = await open({});
    await using _ = app;
    store.fail("break-off", ["transact"]);
    await enqueue();
    await clock.advance(600_000);
    assert.ok(starts.length > 40 && starts.length < 90, `${starts.length} tries in ten minutes`);
    store.heal();
    await clock.advance(15_000);
    assert.deepEqual([(await app.get("a"))?.state, (await app.get("a"))?.attempt], ["succeeded", 1]);
  });

  test("an at-most-once job whose transaction breaks off is dead; one that committed has succeeded [K8]", {
    skip,
  }, async () => {
    const { app, store, heard, starts, clock, enqueue } = await open({ delivery: "at-most-once" });
    await using _ = app;
    store.fail("break-off", ["transact"], 1);
    await enqueue();
    await clock.advance(60_000);
    assert.deepEqual([heard, starts.length], [["dead"], 1]);
    assert.match((await app.get("a"))?.reason ?? "", /store failed under its tx/);
    store.fail("lose-reply", ["transact"], 1);
    await app.redrive("a");
    await clock.advance(60_000);
    assert.deepEqual([heard.slice(1), starts.length], [["succeeded paid"], 2]);
  });

  test("what the function itself throws is the handler's failure, also if it looks like the store's", {
    skip,
  }, async () => {
    const fn = (): never => {
      throw new EscapementError("store-unavailable", "another store, of the handler's own");
    };
    const { app, heard, clock, enqueue } = await open({ fn });
    await using _ = app;
    await enqueue();
    await clock.advance(1_000);
    assert.deepEqual(heard, ["failed"]);
    assert.equal((await app.get("a"))?.attempt, 1);
  });
});
