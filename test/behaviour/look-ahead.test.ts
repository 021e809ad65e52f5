import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/clock.ts";
import { type Duration, defineJob, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { ClaimParams } from "../../src/store/claims.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import type { Store } from "../../src/store/store.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { override } from "../../src/testing/override.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { type Bed, onEveryStore } from "./stores.ts";

const quiet = { lease: "30s", poll: "1s", log: silentLogger } as const;

/** Notes every claim that an app asks for. */
function watched(factory: StoreFactory, claims: ClaimParams[]): StoreFactory {
  const watch = (store: Store): Store =>
    override(store, {
      step: (params) => {
        claims.push(params.claim);
        return store.step(params);
      },
    });
  return { open: async (context) => watch(await factory.open(context)) };
}

/** A worker whose handlers take some virtual time, with a backlog before it. */
class Scene {
  readonly clock = new VirtualClock();
  readonly claims: ClaimParams[] = [];
  readonly started: string[] = [];
  readonly store: StoreFactory;
  handlerMs = 1;
  readonly job = defineJob<null>({
    name: "short",
    run: async ({ job }) => {
      this.started.push(job.id);
      await sleep(this.clock, this.handlerMs);
    },
  });
  readonly once = defineJob<null>({
    name: "once",
    delivery: "at-most-once",
    run: ({ job }) => void this.started.push(job.id),
  });

  constructor(bed: Bed) {
    this.store = watched(bed.store(), this.claims);
  }

  open(options: { readonly concurrency?: number; readonly lookAhead?: Duration } = {}): TestEscapement {
    const jobs = [this.job, this.once];
    return new TestEscapement({ ...quiet, concurrency: 1, ...options, store: this.store, jobs }, this.clock);
  }

  async enqueue(app: Escapement, count: number): Promise<void> {
    await app.enqueueMany(
      this.job,
      Array.from({ length: count }, () => ({ input: null })),
    );
  }

  /** Moves on by a millisecond at a time until it holds. */
  async until(what: string, holds: () => boolean | Promise<boolean>, mostMs = 10_000): Promise<void> {
    for (let ms = 0; ms < mostMs; ms += 1) {
      if (await holds()) return;
      await this.clock.advance(1);
    }
    assert.fail(`${what} within ${mostMs} ms`);
  }
}

onEveryStore("look-ahead", (bed) => {
  test("short handlers do not wait for the store each time", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 200);
    await app.start({ roles: ["worker"] });
    await scene.until("all have run", () => scene.started.length === 200);
    assert(scene.claims.some(({ ahead = 0 }) => ahead > 0));
    assert(scene.claims.length < 100, `200 jobs took ${scene.claims.length} claims`);
    await scene.until("all are written", async () => (await app.count({ states: ["succeeded"] })) === 200);
  });

  test("switched off, nothing is claimed ahead", async () => {
    const scene = new Scene(bed);
    await using app = scene.open({ lookAhead: "0ms" });
    await scene.enqueue(app, 20);
    await app.start({ roles: ["worker"] });
    await scene.until("all have run", () => scene.started.length === 20);
    assert(scene.claims.every(({ ahead }) => ahead === 0));
  });

  test("two workers with slow handlers share a backlog evenly", async () => {
    const scene = new Scene(bed);
    scene.handlerMs = 1_000;
    await using first = scene.open();
    await using second = scene.open();
    await scene.enqueue(first, 20);
    const ran = { first: 0, second: 0 };
    first.on("started", () => {
      ran.first += 1;
    });
    second.on("started", () => {
      ran.second += 1;
    });
    await first.start({ roles: ["worker"] });
    await second.start({ roles: ["worker"] });
    for (let ms = 0; ms < 60_000 && scene.started.length < 20; ms += 100) await scene.clock.advance(100);
    assert.equal(scene.started.length, 20);
    assert(Math.abs(ran.first - ran.second) <= 2, JSON.stringify(ran));
  });

  test("a queue that is paused stops at once, and what was claimed ahead is waiting again", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 500);
    await app.start({ roles: ["worker"] });
    await scene.until("some have run", () => scene.started.length >= 50);
    await app.pauseQueue("default");
    const before = scene.started.length;
    await scene.clock.advance(10);
    assert(scene.started.length - before <= 5, `${scene.started.length - before} started in the pause`);
    const after = scene.started.length;
    await scene.clock.advance(2_000);
    assert.equal(scene.started.length, after);
    await scene.until("none is held", async () => (await app.count({ states: ["active"] })) === 0);
    assert.equal(await app.count({ states: ["waiting"] }), 500 - after);
  });

  test("an urgent job is overtaken by no more than what was claimed ahead", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 500);
    await app.start({ roles: ["worker"] });
    await scene.until("some have run", () => scene.started.length >= 50);
    const before = scene.started.length;
    const { id } = await app.enqueue(scene.job, null, { priority: 10 });
    await scene.until("it has started", () => scene.started.includes(id));
    assert(scene.started.indexOf(id) - before <= 100, `it came after ${scene.started.indexOf(id) - before}`);
  });

  test("an at-most-once job is never held without being started, and has its turn", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 100);
    await app.enqueue(scene.once, null, { id: "the one" });
    await scene.enqueue(app, 100);
    await app.start({ roles: ["worker"] });
    await scene.until("it has started", async () => {
      const held = await app.get("the one");
      assert(held?.state !== "active" || scene.started.includes("the one"));
      return scene.started.includes("the one");
    });
    assert.equal(scene.started.indexOf("the one"), 100, "it came in its place");
  });

  test("a stop gives back what has not started, as it came", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 300);
    await app.start({ roles: ["worker"] });
    await scene.until("some have run", () => scene.started.length >= 50);
    const stopping = app.stop();
    await scene.clock.advance(5_000);
    await stopping;
    await using looking = scene.open();
    const { jobs } = await looking.list({ states: ["waiting"] }, { limit: 500 });
    assert.equal(jobs.length, 300 - scene.started.length);
    assert(jobs.every(({ attempt, crashes }) => attempt === 0 && crashes === 0));
  });

  test("a job that is cancelled while it waits for room never starts", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 300);
    await app.start({ roles: ["worker"] });
    await scene.until("some have run", () => scene.started.length >= 50);
    const { jobs } = await app.list({ states: ["active"] }, { limit: 500 });
    const waiting = jobs.filter(({ id }) => !scene.started.includes(id)).map(({ id }) => id);
    const last = waiting.at(0);
    assert(last !== undefined, "none is held ahead");
    await app.cancel(last);
    await scene.until("it is cancelled", async () => (await app.get(last))?.state === "cancelled");
    assert(!scene.started.includes(last));
  });

  test("what waits behind a handler that has become slow is left to others", async () => {
    const scene = new Scene(bed);
    await using app = scene.open();
    await scene.enqueue(app, 300);
    await app.start({ roles: ["worker"] });
    await scene.until("some have run", () => scene.started.length >= 50);
    scene.handlerMs = 20_000;
    await scene.clock.advance(300);
    assert.equal(await app.count({ states: ["active"] }), 1);
    const before = scene.started.length;
    await using other = scene.open();
    await other.start({ roles: ["worker"] });
    await scene.until("another runs them", () => scene.started.length > before, 15_000);
  });
});
