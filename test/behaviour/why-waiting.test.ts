import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AnyDefinition,
  type CauseCode,
  defineJob,
  type EscapementOptions,
  snooze,
} from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { refused, ScriptedTransport } from "./scripted-transport.ts";
import { onEveryStore } from "./stores.ts";

onEveryStore("why a job waits", (bed) => {
  /** Several processes on one store and one clock. */
  function scene() {
    const clock = new VirtualClock();
    const store = bed.store();
    const node = (jobs: readonly AnyDefinition[], options: EscapementOptions = {}) => {
      const wire = new FaultyStore(store);
      const app = new TestEscapement({ store: wire, jobs, log: silentLogger, ...options }, clock);
      app.on("error", () => {});
      return { app, wire };
    };
    return { clock, store, node };
  }

  const plain = defineJob<null>({ name: "plain", run: () => {} });
  const endless = (name: string, more: object = {}) =>
    defineJob<string>({ name, run: ({ signal }) => untilAborted(signal), ...more });

  /** Expects these reasons, in this order, and returns what `explain` says of them: its last lines. */
  async function expectCauses(app: TestEscapement, id: string, ...codes: CauseCode[]): Promise<string> {
    const diagnosis = await app.diagnose(id);
    assert.deepEqual(
      diagnosis?.causes.map(({ code }) => code),
      codes,
    );
    const lines = await app.explain(id);
    const at = lines.findIndex((line) => line.startsWith(`now ${diagnosis?.state}`));
    assert.equal(lines.length - at - 1, codes.length, lines.join("\n"));
    return lines.slice(at + 1).join("\n");
  }

  test("its queue is paused, and nobody is there to handle it: each reason is named", async () => {
    const { node } = scene();
    await using client = node([plain]).app;
    const { id } = await client.enqueue(plain, null);
    const nobody = await expectCauses(client, id, "no-handler");
    assert.match(nobody, /^ {2}no living node handles "plain": no node is alive → start a node whose jobs/);
    await client.pauseQueue("default");
    const both = await expectCauses(client, id, "queue-paused", "no-handler");
    assert.match(both, /^ {2}queue "default" is paused → resume it: escapement queues resume default\n/);
  });

  test("no living node handles its name; one that did is named, with when it fell silent", async () => {
    const { clock, node } = scene();
    const dying = node([plain]);
    await dying.app.start();
    await using other = node([endless("another")]).app;
    await other.start();
    dying.wire.fail("refuse", ["putNode", "step", "claim", "removeNode"]);
    await clock.advance(60_000);
    const { id } = await other.enqueue(plain, null);
    const said = await expectCauses(other, id, "no-handler");
    assert.match(
      said,
      /^ {2}no living node handles "plain"; \S+ did, and has been silent since \S+Z → start that/,
    );
    dying.wire.heal();
    await dying.app[Symbol.asyncDispose]();
  });

  test("a node handles its name, but does not work on its queue", async () => {
    const { clock, node } = scene();
    await using app = node([plain]).app;
    await app.start({ queues: ["mail"] });
    const { id } = await app.enqueue(plain, null);
    await clock.advance(1_000);
    const said = await expectCauses(app, id, "queue-not-served");
    assert.match(
      said,
      /^ {2}node \S+ handles "plain", but not in queue "default" → start a node with "default"/,
    );
  });

  test("its time has not come, with or without a failure before it, or its handler snoozed it", async () => {
    const { clock, node } = scene();
    const failing = defineJob<null>({
      name: "failing",
      retry: { attempts: 4, backoff: { delay: "10m" } },
      run: () => {
        throw new Error("no luck");
      },
    });
    const sleepy = defineJob<null>({ name: "sleepy", run: () => snooze("1h") });
    await using app = node([plain, failing, sleepy]).app;
    await app.start();
    const later = await app.enqueue(plain, null, { delay: "1h" });
    assert.match(await expectCauses(app, later.id, "due-later"), /^ {2}it is due at \S+Z, in 1h → to run it/);
    const failed = await app.enqueue(failing, null);
    const snoozed = await app.enqueue(sleepy, null);
    await clock.advance(1_000);
    assert.match(
      await expectCauses(app, failed.id, "backoff"),
      /^ {2}attempt 1 of 4 failed with Error: no luck; the next one is due at \S+Z, in .+ → fix what failed/,
    );
    assert.match(
      await expectCauses(app, snoozed.id, "snoozed"),
      /^ {2}its handler snoozed it; it is due again at/,
    );
  });

  test("its parents have not succeeded", async () => {
    const { node } = scene();
    await using app = node([plain]).app;
    await app.start();
    await app.enqueue(plain, null, { id: "first", delay: "1h" });
    await app.enqueue(plain, null, { id: "second", after: ["first"] });
    await app.enqueue(plain, null, { id: "third", after: ["first", "second"] });
    assert.equal(
      await expectCauses(app, "third", "parents"),
      "  it waits for 2 parents: first (waiting), second (blocked) → escapement explain first",
    );
  });

  test("its queue runs, or starts, as many as it may", async () => {
    const { clock, node } = scene();
    const slow = endless("slow");
    const rated = defineJob<null>({ name: "rated", queue: "rated", run: () => {} });
    await using app = node([slow, rated]).app;
    await app.configureQueue("default", { concurrency: 1 });
    await app.configureQueue("rated", { rate: { limit: 1, per: "1h" } });
    await app.start();
    await app.enqueue(slow, "");
    await app.enqueue(rated, null);
    await clock.advance(1_000);
    const blocked = await app.enqueue(slow, "");
    const late = await app.enqueue(rated, null);
    await clock.advance(1_000);
    assert.match(
      await expectCauses(app, blocked.id, "queue-concurrency"),
      /^ {2}queue "default" may run 1 job at once, and 1 is active → wait until one ends, or raise the limit/,
    );
    assert.match(
      await expectCauses(app, late.id, "queue-rate"),
      /^ {2}queue "rated" may start 1 job per 1h, and has; the next may start at \S+Z, in 59m/,
    );
  });

  test("its key runs, or starts, as many as it may; a process that does not know the limit says so", async () => {
    const { clock, node } = scene();
    const keyed = endless("keyed", { concurrency: { key: (input: string) => input, limit: 1 } });
    const rated = defineJob<null>({ name: "rated", rate: { limit: 1, per: "1h" }, run: () => {} });
    await using app = node([keyed, rated]).app;
    await using stranger = node([]).app;
    await app.start();
    await app.enqueue(keyed, "ada", { id: "holder" });
    await app.enqueue(rated, null);
    await clock.advance(1_000);
    const held = await app.enqueue(keyed, "ada");
    const late = await app.enqueue(rated, null);
    await clock.advance(1_000);
    assert.equal(
      await expectCauses(app, held.id, "key-concurrency"),
      '  concurrency key "ada" of "keyed" allows 1 job at once, and 1 is active: holder → wait until one ends, or see what holds it up: escapement explain holder',
    );
    assert.match(
      await expectCauses(app, late.id, "key-rate"),
      /^ {2}the rate limit of "rated" allows 1 job to start per 1h, and the window is full; the next may start at \S+Z, in 59m/,
    );
    assert.match(await expectCauses(stranger, held.id, "key-concurrency"), /this process does not know/);
    assert.match(await expectCauses(stranger, late.id, "key-rate"), /this process does not know/);
    await assert.rejects(
      async () => {
        const waiting = app.result(held.id, { timeout: "1s" });
        await Promise.allSettled([waiting, clock.advance(2_000)]);
        await waiting;
      },
      {
        code: "result-timeout",
        message: `job "${held.id}" is still waiting after 1000 ms: concurrency key "ada" of "keyed" allows 1 job at once, and 1 is active: holder → wait until one ends, or see what holds it up: escapement explain holder`,
      },
    );
  });

  test("all slots of the nodes that could run it are busy; then nothing holds it back", async () => {
    const { clock, node } = scene();
    const slow = endless("slow");
    await using app = node([slow, plain], { concurrency: 2 }).app;
    await app.start();
    await app.enqueue(slow, "", { id: "one" });
    await app.enqueue(slow, "", { id: "two" });
    await clock.advance(1_000);
    const { id } = await app.enqueue(plain, null);
    await clock.advance(1_000);
    assert.match(
      await expectCauses(app, id, "all-slots-busy"),
      /^ {2}2 of 2 slots are busy on the only node that could run it → wait, start more nodes/,
    );
    assert.match(
      await expectCauses(app, "one", "running"),
      /^ {2}it has been running on \S+ for 2s, since \S+Z$/,
    );
    await app.pauseQueue("default");
    await app.cancel("one");
    await clock.advance(1_000);
    assert.deepEqual((await app.diagnose("one"))?.causes, [], "it has ended");
    await expectCauses(app, id, "queue-paused");
  });

  test("one more crash would make it dead: it waits for a worker that runs nothing else", async () => {
    const { clock, store, node } = scene();
    const slow = endless("slow", { queue: "other" });
    await using app = node([plain, slow]).app;
    await app.enqueue(plain, null, { id: "crashing" });
    await crash(store, clock, "plain", 2);
    await app.pauseQueue("default");
    await app.start();
    await app.enqueue(slow, "");
    await clock.advance(1_000);
    await app.resumeQueue("default");
    await clock.advance(1_000);
    assert.match(
      await expectCauses(app, "crashing", "runs-alone"),
      /^ {2}it crashed its worker 2 times, and crash 3 would make it dead, so it runs alone/,
    );
  });

  test("it is active, and its node fell silent; or its cancellation was requested, and it goes on", async () => {
    const { clock, node } = scene();
    const deaf = defineJob<null>({
      name: "deaf",
      run: async () => {
        await clockWait(clock, 3_600_000);
      },
    });
    const once = defineJob<null>({
      name: "once",
      delivery: "at-most-once",
      run: () => clockWait(clock, 3_600_000),
    });
    const dying = node([deaf, once]);
    await dying.app.start({ roles: ["worker"] });
    await using client = node([]).app;
    await client.enqueue(deaf, null, { id: "deaf" });
    await client.enqueue(once, null, { id: "once" });
    await clock.advance(1_000);
    await client.cancel("deaf", { reason: "enough" });
    await clock.advance(1_000);
    assert.match(
      await expectCauses(client, "deaf", "cancel-requested", "running"),
      /^ {2}its cancellation was requested, and its handler on \S+ has not ended yet → a handler ends early only/,
    );
    dying.wire.fail("refuse", ["putNode", "extend", "step", "claim", "finish", "removeNode"]);
    await clock.advance(60_000);
    assert.match(
      await expectCauses(client, "once", "claimer-silent"),
      /^ {2}its node \S+ has been silent since \S+Z; when the lease runs out, it is lost, .+ → start a node: no/,
    );
    await dying.app[Symbol.asyncDispose]();
  });

  test("it expired, and no reaper has come yet", async () => {
    const { clock, node } = scene();
    const brief = defineJob<null>({ name: "brief", expireIn: "1m", run: () => {} });
    await using app = node([brief]).app;
    await app.start({ roles: ["worker"], queues: ["other"] });
    const { id } = await app.enqueue(brief, null);
    await clock.advance(120_000);
    assert.match(await expectCauses(app, id, "expired", "queue-not-served"), /^ {2}it expired at \S+Z/);
  });

  test("a job with a route: no relay, one without the route, a partition that nobody owns, a broker that refuses", async () => {
    const { clock, node } = scene();
    const broker = new ScriptedTransport(clock);
    const pay = defineJob<null>({ name: "pay", route: broker.route({ destination: "payments" }) });
    const other = defineJob<null>({ name: "other", route: broker.route({ destination: "others" }) });
    const relay = { partitions: 1 };
    await using client = node([pay]).app;
    const { id } = await client.enqueue(pay, null);
    assert.match(
      await expectCauses(client, id, "no-relay"),
      /^ {2}no living relay publishes "pay": no relay is alive → start a node/,
    );
    {
      await using stranger = node([other], { relay }).app;
      await stranger.start({ roles: ["relay"] });
      await clock.advance(1_000);
      await expectCauses(client, id, "no-relay");
      await client.pauseQueue("default");
      await using second = node([pay], { relay }).app;
      await second.start({ roles: ["relay"] });
      await clock.advance(1_000);
      await client.resumeQueue("default");
      assert.match(
        await expectCauses(client, id, "owner-without-route"),
        /^ {2}its partition 0 is owned by \S+, which has no route for "pay" → give every relay/,
      );
    }
    const hindered = node([pay], { relay });
    hindered.wire.fail("refuse", ["acquirePartitions"]);
    await hindered.app.start({ roles: ["relay"] });
    await clock.advance(1_000);
    assert.match(
      await expectCauses(client, id, "partition-without-owner"),
      /^ {2}its partition 0 has no owner → a living relay takes it within a lease/,
    );
    await hindered.app[Symbol.asyncDispose]();
    broker.reply = () => refused();
    await using publishing = node([pay], { relay }).app;
    await publishing.start({ roles: ["relay"] });
    await clock.advance(500);
    const said = await expectCauses(client, id, "destination-refuses");
    assert.match(
      said,
      /^ {2}its destination refused it .+ with Error: .+; it is published again at \S+Z.* → look at the broker/,
    );
  });
});

function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener("abort", () => resolve());
  return promise;
}

/** Waits on the virtual clock, and for nothing else. */
function clockWait(clock: VirtualClock, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  clock.after(ms, resolve);
  return promise;
}

/** Claims the job and lets the lease run out, so often. */
async function crash(factory: StoreFactory, clock: VirtualClock, name: string, times: number): Promise<void> {
  const store: Store = await factory.open({ namespace: "default", clock, log: silentLogger });
  for (let n = 1; n <= times; n += 1) {
    await store.claim({
      claimer: "crashing",
      sequence: n,
      leaseMs: 1_000,
      limit: 1,
      queues: null,
      names: [{ name, concurrency: null, rate: null }],
      alone: true,
    });
    await clock.advance(2_000);
    await store.reap({ limit: 10 });
  }
  await store.close();
}
