import assert from "node:assert/strict";
import type { NewJob } from "../../store/jobs.ts";
import { leaseMs, named } from "./claimer.ts";
import { type ConformanceTest, hour, newJob, type Scene, succeed } from "./scene.ts";

/** A job that already took down two workers of the three it may. */
async function addFragile(scene: Scene, job: NewJob): Promise<void> {
  await scene.add({ ...job, maxCrashes: 2 });
  const claimer = scene.claimer(`victim of ${job.id}`);
  const names = [named(job.name)];
  const claimed = await claimer.one({ names, queues: [{ queue: job.queue, limit: 1 }] });
  await claimer.finish(claimed, { kind: "crash", reason: "its thread died" });
}

export function fragileTests(test: ConformanceTest): void {
  test("a fragile job is left to a claimer that is alone, which is told of it", async (scene) => {
    await addFragile(scene, newJob("f"));
    await scene.add(newJob("a"), newJob("b"));
    const busy = await scene.claimer("busy").claim({ limit: 1 });
    assert.deepEqual(
      busy.jobs.map(({ id }) => id),
      ["a"],
    );
    assert.equal(busy.fragile, true);
    const alone = await scene.claimer("alone").claim({ alone: true });
    assert.deepEqual(
      alone.jobs.map(({ id, crashes }) => ({ id, crashes })),
      [{ id: "f", crashes: 1 }],
    );
    assert.equal(alone.fragile, false);
  });

  test("a fragile job goes before all others and by itself, whatever its priority", async (scene) => {
    await addFragile(scene, newJob("f", { priority: -9 }));
    await scene.add(newJob("a", { priority: 9 }));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ alone: true }), ["f"]);
    assert.deepEqual(await claimer.ids({ alone: false }), ["a"]);
  });

  test("only one fragile job is given at a time", async (scene) => {
    await addFragile(scene, newJob("f1"));
    await addFragile(scene, newJob("f2"));
    const claimer = scene.claimer();
    assert.deepEqual(await claimer.ids({ alone: true }), ["f1"]);
    assert.deepEqual(await claimer.ids({ alone: true }), ["f2"]);
  });

  test("a claimer that is alone takes a full batch when nothing fragile is due", async (scene) => {
    await scene.add(newJob("a"), newJob("b"));
    const answer = await scene.claimer().claim({ alone: true });
    assert.equal(answer.jobs.length, 2);
    assert.equal(answer.fragile, false);
  });

  test("nobody is told of a fragile job that he could not take: paused, another queue, another name, not due", async (scene) => {
    await addFragile(scene, newJob("f", { queue: "q" }));
    const claimer = scene.claimer();
    assert.equal((await claimer.claim({ names: [named("other")] })).fragile, false);
    assert.equal((await claimer.claim({ queues: [{ queue: "default", limit: 9 }] })).fragile, false);
    await scene.store.configureQueue({ queue: "q", paused: true });
    assert.equal((await claimer.claim()).fragile, false);
    assert.deepEqual(await claimer.ids({ alone: true }), []);
    await scene.store.configureQueue({ queue: "q", paused: false });
    await scene.store.update({ id: "f", delayMs: hour });
    assert.equal((await claimer.claim()).fragile, false);
    assert.deepEqual(await claimer.ids({ alone: true }), []);
  });

  test("a fragile job stands in no lane, but counts for its key and obeys it", async (scene) => {
    const names = [named("work", { concurrency: 1 })];
    await addFragile(scene, newJob("f", { concurrencyKey: "k" }));
    await scene.add(newJob("a", { concurrencyKey: "k" }));
    const busy = scene.claimer("busy");
    const claimed = await busy.one({ names });
    assert.equal(claimed.id, "a");
    const alone = scene.claimer("alone");
    const answer = await alone.claim({ names, alone: true });
    assert.deepEqual([answer.jobs, answer.fragile], [[], false]);
    await busy.finish(claimed, succeed);
    await scene.add(newJob("b", { concurrencyKey: "k" }));
    assert.deepEqual(await alone.ids({ names, alone: true }), ["f"]);
    assert.deepEqual(await busy.ids({ names }), []);
  });

  test("the last crash makes it dead as poison, with how it came to that on record [C5]", async (scene) => {
    await addFragile(scene, newJob("f"));
    await scene.claimer().one({ alone: true });
    await scene.advance(2 * leaseMs);
    await scene.reapAll();
    const job = await scene.job("f");
    assert.deepEqual([job.state, job.crashes], ["dead", 2]);
    assert.match(job.reason ?? "", /^poison: its lease ran out/);
    assert.deepEqual(
      (await scene.trail("f")).map(({ kind, text }) => ({ kind, text })),
      [
        { kind: "crashed", text: "its thread died" },
        { kind: "crashed", text: "its lease ran out" },
      ],
    );
  });

  test("a redriven poison job starts with a clean slate", async (scene) => {
    await addFragile(scene, newJob("f"));
    const claimer = scene.claimer();
    await claimer.finish(await claimer.one({ alone: true }), { kind: "crash", reason: "again" });
    await scene.redrive("f");
    assert.deepEqual(await claimer.ids(), ["f"]);
  });
}
