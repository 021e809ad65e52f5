import assert from "node:assert/strict";
import { deliveries } from "../../job.ts";
import { type HeldJob, type Outcome, type Settlement, story } from "../../state.ts";
import type { ClaimedJob } from "../../store/claims.ts";
import { everyOutcome, settleOrRefuse, stops } from "../policy-cases.ts";
import { assertAbout, type ConformanceTest, later, newJob, type Scene } from "./scene.ts";

/** A job before the end of its claim, and that end. */
interface Held {
  readonly id: string;
  readonly crashes: number;
  readonly maxCrashes: number;
  readonly delivery: HeldJob["delivery"];
  readonly stop: (typeof stops)[number];
  readonly outcome: Outcome;
}

/** Crashes before, and at the most: far from the last one, right before it, and fragile. */
const crashCounts = [
  [0, 1],
  [0, 3],
  [1, 2],
  [1, 4],
] as const;

function everyHeld(): Held[] {
  const rows = deliveries.flatMap((delivery) =>
    crashCounts.flatMap(([crashes, maxCrashes]) =>
      stops.flatMap((stop) =>
        everyOutcome.map((outcome) => ({ delivery, crashes, maxCrashes, stop, outcome })),
      ),
    ),
  );
  // A crash ends a job that runs at most once.
  const possible = rows.filter(({ delivery, crashes }) => delivery !== "at-most-once" || crashes === 0);
  return possible.map((row, n) => ({ id: `{${n}}`, ...row }));
}

/** Claims all that wait. */
async function claimAll(scene: Scene, claimer: string): Promise<Map<string, ClaimedJob>> {
  const claimed = new Map<string, ClaimedJob>();
  for (;;) {
    const jobs = await scene.claimer(claimer).take({ limit: 1_000, alone: true });
    if (jobs.length === 0) return claimed;
    for (const job of jobs) claimed.set(job.id, job);
  }
}

async function crashOnce(scene: Scene, held: readonly Held[]): Promise<void> {
  const claimed = await claimAll(scene, "victim");
  const finishes = held.flatMap(({ id, crashes }) => {
    const outcome: Outcome =
      crashes === 0 ? { kind: "release" } : { kind: "crash", reason: "its process is gone" };
    const token = claimed.get(id)?.token;
    assert(token !== undefined);
    return [{ id, token, outcome }];
  });
  await scene.store.finish({ claimer: "victim", finishes });
}

export function policyTests(test: ConformanceTest): void {
  test("every end of a claim, of every delivery, with and without crashes and a cancel, comes to what the core decides", async (scene) => {
    const held = everyHeld();
    await scene.add(...held.map(({ id, delivery, maxCrashes }) => newJob(id, { delivery, maxCrashes })));
    await crashOnce(scene, held);
    const claimed = await claimAll(scene, "holder");
    assert.equal(claimed.size, held.length);
    for (const reason of [null, "it's enough"]) {
      const ids = held
        .filter(({ stop }) => stop.cancelRequested && stop.reason === reason)
        .map(({ id }) => id);
      await scene.store.cancel({ select: { ids }, reason });
    }
    const before = await scene.store.get({ ids: held.map(({ id }) => id) });
    const expected = held.map(({ id, delivery, crashes, maxCrashes, stop, outcome }, n) => {
      const attempt = claimed.get(id)?.attempt ?? 0;
      assert.deepEqual([before[n]?.state, before[n]?.crashes], ["active", crashes]);
      return settleOrRefuse({ delivery, attempt, crashes, maxCrashes, ...stop }, outcome);
    });
    const finishOf = ({ id, outcome }: Held) => ({ id, token: claimed.get(id)?.token ?? 0, outcome });
    const refused = held.filter((_, n) => expected[n] === null);
    assert.equal(refused.length, 3 * 2 * stops.length);
    for (const one of refused)
      await assert.rejects(scene.store.finish({ claimer: "holder", finishes: [finishOf(one)] }));
    const finishedAt = await scene.now();
    const finishes = held.filter((_, n) => expected[n] !== null).map(finishOf);
    const results = await scene.store.finish({ claimer: "holder", finishes });
    assert(results.every(({ outcome }) => outcome === "written"));
    const jobs = await scene.store.get({ ids: held.map(({ id }) => id) });
    for (const [n, one] of held.entries()) {
      const job = jobs[n];
      const earlier = before[n];
      const settlement = expected[n];
      assert(job && earlier);
      const what = JSON.stringify(one);
      if (settlement === null || settlement === undefined) {
        assert.equal(job.state, "active", what);
        continue;
      }
      assert.deepEqual(pick(job), { ...pick(settlement), error: settlement.error ?? earlier.error }, what);
      assert.equal(job.rollbacks, earlier.rollbacks + settlement.rollbacks, what);
      const runAt = settlement.delayMs === null ? earlier.runAt : later(finishedAt, settlement.delayMs);
      assertAbout(job.runAt, runAt, what);
      await assertTold(scene, one);
    }
  });
}

function pick({ state, reason, attempt, crashes, error, result }: Omit<Settlement, "rollbacks" | "delayMs">) {
  return { state, reason, attempt, crashes, error, result };
}

/** The trail says of this end what the core says. */
async function assertTold(scene: Scene, { id, outcome }: Held): Promise<void> {
  const told = story(outcome);
  if (told === null) return;
  const last = (await scene.trail(id)).at(-1);
  assert(last);
  assert.deepEqual({ kind: last.kind, text: last.text, error: last.error }, told, JSON.stringify(outcome));
}
