import assert from "node:assert/strict";
import { test } from "node:test";
import { defineJob, type StopReason } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import type { FinishParams } from "../../src/store/claims.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { override } from "../../src/testing/override.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { FaultyStore } from "./faulty.ts";
import { onEveryStore } from "./stores.ts";

const allVerbs = ["step", "finish", "claim", "extend", "reap", "report", "enqueue", "putNode"] as const;

onEveryStore("faults", (bed) => {
  /** A handler that ends when the test says so. */
  function gate(clock: VirtualClock) {
    const starts: string[] = [];
    const stops: string[] = [];
    const waiting: (() => void)[] = [];
    return {
      starts,
      stops,
      run: ({ job, signal }: { job: { id: string }; signal: AbortSignal }) => {
        starts.push(job.id);
        return new Promise<string>((resolve, reject) => {
          waiting.push(() => resolve("done"));
          signal.addEventListener("abort", () => {
            stops.push(`${(signal.reason as StopReason).cause} at ${clock.monotonic()}`);
            reject(signal.reason);
          });
        });
      },
      open: () => {
        for (const resolve of waiting.splice(0)) resolve();
      },
    };
  }

  async function start(
    store: FaultyStore,
    clock: VirtualClock,
    jobs: Parameters<typeof TestEscapement.prototype.start>,
    options: object,
  ) {
    const app = new TestEscapement({ store, log: silentLogger, ...options }, clock);
    await app.start(...jobs);
    return app;
  }

  test("a start that fails has begun no handler, and gives back what it claimed meanwhile", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    const starts: string[] = [];
    const job = defineJob<null>({ name: "eager", run: ({ job: { id } }) => void starts.push(id) });
    const app = new TestEscapement({ store, log: silentLogger, jobs: [job] }, clock);
    const { id } = await app.enqueue(job, null);
    store.fail("refuse", ["subscribe"]);
    await assert.rejects(app.start());
    assert.deepEqual(starts, []);
    assert(store.calls.includes("step"));
    assert.equal((await app.get(id))?.state, "waiting");
    store.heal();
    await app.start();
    await clock.advance(5_000);
    assert.deepEqual(starts, [id]);
    assert.equal((await app.get(id))?.attempt, 1);
    await app.stop();
  });

  test("a slow handler that renews keeps its job, however many leases it takes [C2, A7]", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    const slow = gate(clock);
    const job = defineJob<null>({ name: "slow", run: slow.run });
    await using first = await start(store, clock, [], { jobs: [job] });
    await using second = await start(store, clock, [], { jobs: [job] });
    const { id } = await first.enqueue(job, null);
    await first.clock.advance(10 * 60_000);
    assert.deepEqual(slow.starts, [id]);
    slow.open();
    await second.runUntilIdle();
    assert.equal((await first.get(id))?.state, "succeeded");
    assert.equal((await first.get(id))?.crashes, 0);
  });

  test("an outage shorter than the lease runs nothing twice: the finish is kept until it is written", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    const slow = gate(clock);
    const job = defineJob<null>({ name: "slow", run: slow.run });
    await using app = await start(store, clock, [], { jobs: [job] });
    const { id } = await app.enqueue(job, null);
    await clock.advance(1_000);
    store.fail("refuse", allVerbs);
    slow.open();
    await clock.advance(20_000);
    store.heal();
    await clock.advance(60_000);
    assert.deepEqual(slow.starts, [id]);
    assert.equal((await app.get(id))?.state, "succeeded");
    assert.equal((await app.get(id))?.token, 1);
  });

  for (const delivery of ["at-most-once", "at-least-once", "effectively-once"] as const) {
    const skip = delivery === "effectively-once" && bed.noTransactions;
    test(`lost replies double nothing and lose nothing (${delivery}) [C1]`, { skip }, async () => {
      const clock = new VirtualClock();
      const store = new FaultyStore(bed.store());
      const runs: string[] = [];
      const job = defineJob<number>({ name: "job", delivery, run: ({ job: { id } }) => void runs.push(id) });
      await using app = await start(store, clock, [], { jobs: [job], concurrency: 5 });
      for (let round = 0; round < 10; round++) {
        store.fail("lose-reply", ["step", "finish", "enqueue", "claim"], 3);
        const done = app.enqueueMany(
          job,
          Array.from({ length: 7 }, (_, n) => ({ input: n, id: `${round}-${n}` })),
        );
        await clock.advance(25_000);
        await done;
      }
      await clock.advance(60_000);
      assert.equal(runs.length, 70);
      assert.equal(new Set(runs).size, 70);
      assert.equal(await app.count({ states: ["succeeded"] }), 70);
    });
  }

  test("when the claim cannot be written, no handler starts [K4]", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    const runs: string[] = [];
    const job = defineJob<null>({
      name: "job",
      delivery: "at-most-once",
      run: ({ job: { id } }) => void runs.push(id),
    });
    await using app = await start(store, clock, [], { jobs: [job] });
    // The claim that a start begins with is over.
    await clock.advance(100);
    store.fail("refuse", ["step", "claim"]);
    const { id } = await app.enqueue(job, null);
    await clock.advance(120_000);
    assert.deepEqual(runs, []);
    assert.equal((await app.get(id))?.state, "waiting");
    store.heal();
    await clock.advance(5_000);
    assert.deepEqual(runs, [id]);
  });

  test("a holder that cannot renew fires its signals before the lease ends, and the next holder starts after it", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const cut = new FaultyStore(inner);
    const [mine, other] = [gate(clock), gate(clock)];
    const options = { retry: { attempts: 3 } };
    await using app = await start(cut, clock, [], {
      jobs: [defineJob<null>({ name: "job", ...options, run: mine.run })],
    });
    const { id } = await app.enqueue("job", null);
    await clock.advance(100);
    const claimedBy = clock.monotonic();
    cut.fail("refuse", allVerbs);
    await using rescuer = await start(new FaultyStore(inner), clock, [], {
      jobs: [defineJob<null>({ name: "job", ...options, run: other.run })],
    });
    await clock.advance(60_000);
    const [stop] = mine.stops;
    const stoppedAt = Number(stop?.split(" at ")[1]);
    assert.match(stop ?? "", /^lease-lost/);
    assert.ok(stoppedAt < claimedBy + 30_000, `stopped at ${stoppedAt}`);
    assert.deepEqual(other.starts, [id], "the rescuer has it");
    cut.heal();
    await clock.advance(5_000);
    assert.equal((await rescuer.get(id))?.token, 2, "the stale outcome changed nothing");
    other.open();
    await rescuer.runUntilIdle();
    assert.equal((await rescuer.get(id))?.state, "succeeded");
  });

  test("the claims of a dead process run again after the lease; at-most-once is lost, with the reason [A3]", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const dead = new FaultyStore(inner);
    const started: string[] = [];
    const define = (name: string, delivery: "at-most-once" | "at-least-once", never: boolean) =>
      defineJob<null>({
        name,
        delivery,
        run: () => {
          started.push(name);
          return never ? new Promise<void>(() => {}) : undefined;
        },
      });
    const victim = await start(dead, clock, [], {
      jobs: [define("once", "at-most-once", true), define("again", "at-least-once", true)],
    });
    const once = await victim.enqueue("once", null);
    const again = await victim.enqueue("again", null);
    await clock.advance(100);
    dead.fail("refuse", allVerbs);
    const warnings: string[] = [];
    const log = { ...silentLogger, warn: (_facts: object, line: string) => void warnings.push(line) };
    await using rescuer = await start(new FaultyStore(inner), clock, [], {
      jobs: [define("once", "at-most-once", false), define("again", "at-least-once", false)],
      log,
    });
    await clock.advance(80_000);
    assert.deepEqual(started, ["once", "again", "again"]);
    assert.deepEqual(
      warnings.filter((line) => line.startsWith("job ")),
      [`job ${JSON.stringify(once.id)} (once) is lost: its lease ran out`],
    );
    const [lost, done] = await Promise.all([rescuer.get(once.id), rescuer.get(again.id)]);
    assert.deepEqual([lost?.state, lost?.reason], ["lost", "its lease ran out"]);
    assert.deepEqual([done?.state, done?.crashes, done?.attempt], ["succeeded", 1, 2]);
    const stopping = victim.stop({ timeout: 0 });
    await clock.advance(120_000);
    await stopping;
  });

  test("crash count and poison: a job that kills its workers is dead after three, and runs alone the last time", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const killer = defineJob<null>({ name: "killer", run: () => new Promise<void>(() => {}) });
    let crashing = true;
    const neighbour = defineJob<null>({
      name: "neighbour",
      run: () => (crashing ? new Promise<void>(() => {}) : undefined),
    });
    const beside: string[][] = [];
    let ids: { killer: string } = { killer: "" };
    for (let crash = 0; crash < 3; crash++) {
      crashing = crash < 2;
      const cut = new FaultyStore(inner);
      const running = new Set<string>();
      const victim = new TestEscapement(
        { store: cut, jobs: [killer, neighbour], log: silentLogger, concurrency: 5 },
        clock,
      );
      victim.on("started", ({ job }) => {
        running.add(job.name);
        if (job.name === "killer") beside.push([...running]);
      });
      victim.on("succeeded", ({ job }) => void running.delete(job.name));
      if (crash === 0) ids = { killer: (await victim.enqueue(killer, null)).id };
      await victim.enqueue(neighbour, null);
      await victim.start();
      await clock.advance(40_000);
      cut.fail("refuse", allVerbs);
      const stopping = victim.stop({ timeout: 0 });
      await clock.advance(120_000);
      await stopping;
    }
    await using rescuer = await start(new FaultyStore(inner), clock, [], { jobs: [neighbour] });
    await clock.advance(60_000);
    const job = await rescuer.get(ids.killer);
    assert.equal(job?.state, "dead");
    assert.match(job?.reason ?? "", /^poison/);
    assert.equal(job?.crashes, 3);
    assert.equal(beside.length, 3);
    assert.deepEqual(beside[2], ["killer"], "one crash short of poison it runs alone");
    const neighbours = await rescuer.list({ names: ["neighbour"] });
    assert.ok(
      neighbours.jobs.every(({ state }) => state === "succeeded"),
      "its neighbours are not condemned with it",
    );
  });

  test("a graceful stop records what runs, gives back what has not started, and keeps renewing meanwhile [A8, K8]", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const slow = gate(clock);
    const job = defineJob<null>({ name: "job", delivery: "at-most-once", run: slow.run });
    const app = await start(new FaultyStore(inner), clock, [], { jobs: [job], concurrency: 2 });
    await app.enqueueMany(
      job,
      Array.from({ length: 5 }, () => ({ input: null })),
    );
    await clock.advance(100);
    assert.equal(slow.starts.length, 2);
    const stopping = app.stop({ timeout: "5m" });
    await clock.advance(100_000);
    slow.open();
    await clock.advance(100);
    await stopping;
    await using other = new TestEscapement({ store: inner, log: silentLogger }, clock);
    const states = (await other.list({}, { order: "oldest" })).jobs.map(({ state }) => state);
    assert.deepEqual(states, ["succeeded", "succeeded", "waiting", "waiting", "waiting"]);
  });

  test("jobs that arrive while the process is stopping are given back unstarted, at once [K8]", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const cut = new FaultyStore(inner);
    const runs: string[] = [];
    const job = defineJob<null>({
      name: "job",
      delivery: "at-most-once",
      run: ({ job: { id } }) => void runs.push(id),
    });
    const app = await start(cut, clock, [], { jobs: [job] });
    await clock.advance(100);
    cut.fail("lose-reply", ["step"], 1);
    await app.enqueue(job, null);
    await clock.settle();
    const stopping = app.stop();
    await clock.advance(5_000);
    await stopping;
    await using other = new TestEscapement({ store: inner, log: silentLogger }, clock);
    const [kept] = (await other.list()).jobs;
    assert.deepEqual(runs, []);
    assert.deepEqual([kept?.state, kept?.attempt, kept?.token], ["waiting", 0, 1]);
  });

  test("handlers that outlast the stop's timeout get their signal; their jobs wait again, without a lost try [A8]", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const slow = gate(clock);
    const job = defineJob<null>({ name: "job", run: slow.run });
    const deaf = defineJob<null>({ name: "deaf", run: () => new Promise<void>(() => {}) });
    const deafOnce = defineJob<null>({
      name: "deaf-once",
      delivery: "at-most-once",
      run: () => new Promise<void>(() => {}),
    });
    const app = await start(new FaultyStore(inner), clock, [], { jobs: [job, deaf, deafOnce] });
    for (const one of [job, deaf, deafOnce]) await app.enqueue(one, null);
    await clock.advance(100);
    const stopping = app.stop({ timeout: "10s" });
    await clock.advance(15_000);
    await stopping;
    await using other = new TestEscapement({ store: inner, log: silentLogger }, clock);
    const jobs = (await other.list({}, { order: "oldest" })).jobs;
    assert.match(slow.stops[0] ?? "", /^shutdown at 10100/);
    assert.deepEqual(
      jobs.map(({ name, state, attempt, crashes }) => [name, state, attempt, crashes]),
      [
        ["job", "waiting", 0, 0],
        ["deaf", "waiting", 0, 0],
        ["deaf-once", "lost", 1, 0],
      ],
    );
  });

  const skip = bed.noTransactions;
  test("effectively-once: the effect commits with the completion, and a stale claim's effect does not commit", {
    skip,
  }, async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const cut = new FaultyStore(inner);
    const late: unknown[] = [];
    const waiting: (() => void)[] = [];
    const define = (patient: boolean) =>
      defineJob<null>({
        name: "effect",
        delivery: "effectively-once",
        run: async ({ tx, job }) => {
          if (patient) await new Promise<void>((resolve) => waiting.push(resolve));
          try {
            return await tx(() => `effect of token ${job.token}`);
          } catch (error) {
            late.push((error as { code: string }).code);
            throw error;
          }
        },
      });
    await using zombie = await start(cut, clock, [], { jobs: [define(true)] });
    const { id } = await zombie.enqueue("effect", null);
    await clock.advance(100);
    cut.fail("refuse", allVerbs);
    await using rescuer = await start(new FaultyStore(inner), clock, [], { jobs: [define(false)] });
    await clock.advance(45_000);
    assert.equal((await rescuer.get(id))?.result, "effect of token 2");
    cut.heal();
    for (const resolve of waiting) resolve();
    await clock.advance(5_000);
    assert.deepEqual(late, ["stale-claim"]);
    assert.equal((await rescuer.get(id))?.result, "effect of token 2");
  });

  test("a fragile job does not stop a process that cannot become idle", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const long = gate(clock);
    const crashing = defineJob<null>({ name: "crashing", run: () => new Promise<void>(() => {}) });
    const endless = defineJob<null>({ name: "endless", run: long.run });
    const quick = defineJob<null>({ name: "quick", run: () => {} });
    for (let crash = 0; crash < 2; crash++) {
      const cut = new FaultyStore(inner);
      const victim = new TestEscapement({ store: cut, jobs: [crashing], log: silentLogger }, clock);
      if (crash === 0) await victim.enqueue(crashing, null);
      await victim.start();
      await clock.advance(40_000);
      cut.fail("refuse", allVerbs);
      const stopping = victim.stop({ timeout: 0 });
      await clock.advance(120_000);
      await stopping;
    }
    await using app = new TestEscapement(
      { store: inner, jobs: [endless, quick, crashing], log: silentLogger },
      clock,
    );
    await app.enqueue(endless, null);
    await app.start({ roles: ["worker"], queues: ["default"] });
    await clock.advance(100);
    // Only now is it found that the second victim has died: before, the job might have been taken by an idle process.
    await using reaper = new TestEscapement({ store: inner, jobs: [], log: silentLogger }, clock);
    await reaper.start({ roles: ["reaper"], reapAfter: 0 });
    await clock.advance(1_000);
    assert.equal(await app.count({ names: ["crashing"], states: ["waiting"] }), 1);
    const { id } = await app.enqueue(quick, null);
    await clock.advance(90_000);
    assert.equal((await app.get(id))?.state, "succeeded");
    long.open();
    await app.clock.settle();
  });

  test("the store failing for long ends no process and loses no job", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(bed.store());
    let runs = 0;
    const job = defineJob<null>({
      name: "job",
      run: () => {
        runs += 1;
      },
    });
    await using app = await start(store, clock, [], { jobs: [job] });
    const errors: string[] = [];
    app.on("error", ({ during }) => void errors.push(during));
    await app.enqueue(job, null, { delay: "10m" });
    store.fail("refuse", allVerbs);
    await clock.advance(20 * 60_000);
    assert.equal(runs, 0);
    assert.ok(errors.length > 0, "the trouble was told");
    store.heal();
    await clock.advance(10_000);
    assert.equal(runs, 1);
  });

  test("an outcome that the store cannot take keeps no other back, and is given up", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    const refuse = (finishes: FinishParams["finishes"]): void => {
      if (finishes.some(({ id }) => id === "bad")) throw new TypeError("no such outcome");
    };
    const picky: StoreFactory = {
      open: async (context) => {
        const store = await inner.open(context);
        return override(store, {
          finish: async (params) => {
            refuse(params.finishes);
            return store.finish(params);
          },
          step: async (params) => {
            refuse(params.finishes);
            return store.step(params);
          },
        });
      },
    };
    const errors: string[] = [];
    const log = { ...silentLogger, error: (_facts: object, line: string) => void errors.push(line) };
    const job = defineJob<null>({ name: "job", run: () => {} });
    await using app = new TestEscapement({ store: picky, jobs: [job], log, concurrency: 20 }, clock);
    app.on("error", () => {});
    const ids = ["bad", ...Array.from({ length: 9 }, (_, n) => `good ${n}`)];
    await app.enqueueMany(
      job,
      ids.map((id) => ({ input: null, id })),
    );
    await app.start({ roles: ["worker"] });
    await clock.advance(20_000);
    assert.equal(await app.count({ states: ["succeeded"] }), 9);
    assert.deepEqual(errors, ["the store cannot record an outcome; the lease will expire"]);
  });

  test("a store that says that something is due, and gives nothing, is not asked in a tight loop", async () => {
    const clock = new VirtualClock();
    const inner = bed.store();
    let isEmptyHanded = true;
    let asked = 0;
    const emptyHanded: StoreFactory = {
      open: async (context) => {
        const store = await inner.open(context);
        return override(store, {
          step: async (params) => {
            asked += 1;
            if (!isEmptyHanded) return store.step(params);
            const answer = await store.step({ ...params, claim: { ...params.claim, names: [] } });
            return { ...answer, claimed: { ...answer.claimed, jobs: [], nextAt: answer.claimed.now } };
          },
        });
      },
    };
    const job = defineJob<null>({ name: "job", run: () => {} });
    await using app = new TestEscapement({ store: emptyHanded, jobs: [job], log: silentLogger }, clock);
    const { id } = await app.enqueue(job, null);
    await app.start({ roles: ["worker"] });
    await clock.advance(20_000);
    assert.ok(asked < 60, `${asked} claims in 20 s`);
    isEmptyHanded = false;
    await clock.advance(10_000);
    assert.equal((await app.get(id))?.state, "succeeded");
  });
});
