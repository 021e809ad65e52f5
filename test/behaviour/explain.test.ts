import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, snooze } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { acknowledged, refused, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("explaining a job with a route", (bed) => {
  function scene() {
    const clock = new VirtualClock();
    const inner = bed.store();
    const broker = new ScriptedTransport(clock);
    const pay = defineJob<null>({ name: "pay", route: broker.route({ destination: "payments" }) });
    const plain = defineJob<null>({ name: "plain", run: () => {} });
    const node = (jobs = [pay, plain]) => {
      const wire = new FaultyStore(inner);
      const app = new TestEscapement(
        { store: wire, jobs, poll: 1_000, relay: { partitions: 2 }, log: silentLogger },
        clock,
      );
      app.on("error", () => {});
      return { app, wire };
    };
    return { clock, broker, pay, plain, node };
  }

  test("route, partition, its holder, why it waits, rollbacks: from enqueueing to the end", async () => {
    const { clock, broker, pay, plain, node } = scene();
    await using client = node().app;
    const { id } = await client.enqueue(pay, null, { id: "p" });
    const explain = async (): Promise<string> => (await client.explain(id)).join("\n");
    const first = await explain();
    assert.match(first, /^route: scripted, payments$/m);
    assert.match(first, /^partition: none yet, no relay has run here$/m);
    assert.match(first, /^now waiting\n {2}no living relay publishes "pay": no relay is alive/m);
    await client.pauseQueue("default");
    await using relay = node().app;
    await relay.start({ roles: ["relay"] });
    await clock.advance(1_000);
    const [owner = ""] = (await client.nodes()).map((one) => one.id);
    const { partitions } = await client.partitions();
    const { partition = -1, epoch = -1 } =
      partitions.find((one) => one.owner === owner && one.firstSlot === 0) ?? {};
    assert.deepEqual([partition, epoch], [0, 1], "it holds both");
    assert.match(await explain(), /^now waiting\n {2}queue "default" is paused/m);
    broker.reply = (_, arrival) => (arrival === 1 ? refused() : "never");
    await client.resumeQueue("default");
    await clock.advance(500);
    const refusedOnce = await explain();
    assert.match(refusedOnce, /^rolled back once so far$/m);
    assert.match(refusedOnce, new RegExp(`^partition [01] of 2 \\(epoch 1\\): held by ${owner}$`, "m"));
    assert.match(refusedOnce, /^ {2}its destination refused it once with Error: the broker/m);
    assert.match(
      refusedOnce,
      new RegExp(
        `^\\S+Z enqueued.*\n\\S+Z named by ${owner} \\(token 1\\)\n\\S+Z rolled-back: Error: the broker`,
        "m",
      ),
      "in the order of time",
    );
    assert.doesNotMatch(refusedOnce, /attempt 0/);
    await clock.advance(2_000);
    const named = new RegExp(
      `^ {2}${owner} has been publishing it for .+, and the broker has not answered$`,
      "m",
    );
    assert.match(await explain(), named);
    broker.reply = () => acknowledged;
    await clock.advance(60_000);
    const over = await explain();
    assert.match(over, /^route: scripted, payments\nrolled back 2 times so far\nnow succeeded$/m);
    const local = await client.enqueue(plain, null, { id: "local", delay: "1h" });
    const told = (await client.explain(local.id)).join("\n");
    assert.doesNotMatch(told, /route|partition|relay/);
    assert.match(told, /^now waiting\n {2}it is due at /m);
  });

  test("what happened to a job with a handler stands in the order of time, each attempt under its own number", async () => {
    const { clock, node } = scene();
    let tries = 0;
    const moody = defineJob<null>({
      name: "moody",
      retry: { backoff: { delay: "1s" } },
      run: () => {
        tries += 1;
        if (tries === 1) throw new Error("not in the mood");
        return snooze("1h");
      },
    });
    await using app = node([moody]).app;
    await app.start({ roles: ["worker"] });
    await app.enqueue(moody, null, { id: "m" });
    await clock.advance(30_000);
    await app.update("m", { priority: 1 });
    const told = (await app.explain("m")).map((line) =>
      line.replace(/^\S+Z (\w+).*?( \(attempt.*|$)/, "$1$2"),
    );
    assert.deepEqual(told.slice(1, -2), [
      "enqueued",
      "failed",
      "claimed (attempt 2, token 2)",
      "snoozed",
      "updated",
    ]);
  });

  test("a holder that died, one without the route, and a process that does not know the job", async () => {
    const { clock, broker, pay, plain, node } = scene();
    const other = defineJob<null>({ name: "other", route: broker.route() });
    const dead = node();
    await dead.app.start({ roles: ["relay"] });
    broker.reply = () => "never";
    await dead.app.enqueue(pay, null, { id: "p" });
    await clock.advance(1_000);
    dead.wire.fail("refuse", [
      "renewPartitions",
      "acquirePartitions",
      "checkpoint",
      "putNode",
      "releasePartitions",
    ]);
    await using client = node([plain]).app;
    await clock.advance(40_000);
    const told = (await client.explain("p")).join("\n");
    assert.match(told, /^route: not known to this process/m);
    assert.match(told, /held by no relay, and none is alive$/m);
    assert.match(
      told,
      /^ {2}\S+ was publishing it and no longer owns its partition; the next owner publishes it again$/m,
    );
    await using stranger = node([other]).app;
    await stranger.start({ roles: ["relay"] });
    await client.enqueue(pay, null, { id: "q" });
    await clock.advance(2_000);
    assert.match(
      (await client.explain("q")).join("\n"),
      /^ {2}no living relay publishes "pay"; \S+ did, and has been silent since \S+Z → start/m,
    );
    await dead.app[Symbol.asyncDispose]();
  });
});
