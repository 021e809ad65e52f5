import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { seededRandom } from "../../src/testing/seeded-random.ts";
import { type Damage, openRedisVandal, redisServer } from "./redis-vandal.ts";
import { Scene } from "./scene.ts";
import { sweepsAll } from "./sweep.ts";

const seed = Number(process.env["ESCAPEMENT_SEED"] ?? 1);
/** How many the short form tries. */
const sampled = 60;
/** A full sweep is split into several tests, so none comes near the runner's time limit. */
const parts = sweepsAll ? 6 : 1;
/** `jobs: cut`, to look at some of them. */
const only = process.env["ESCAPEMENT_FUZZ_DAMAGE"];

describe("keys of Redis that something else has written to", { skip: redisServer.skip }, () => {
  before(() => {
    // Time is virtual, but each poll in it is a real trip.
    process.env["ESCAPEMENT_POLL"] = "10s";
  });
  after(() => {
    delete process.env["ESCAPEMENT_POLL"];
  });

  for (let part = 0; part < parts; part += 1)
    test(`whatever stands in the keys of one kind, what is healthy goes on (seed ${seed}, part ${part + 1} of ${parts})`, async (t) => {
      const some = (await chosenDamages()).filter((_, place) => place % parts === part);
      const failures: string[] = [];
      const since = performance.now();
      for (const damage of some) {
        const failure = await tryDamage(damage);
        if (failure !== null) failures.push(`${nameOf(damage)}: ${failure}`);
      }
      t.diagnostic(`${some.length} cases in ${Math.round(performance.now() - since)} ms`);
      assert.deepEqual(failures, []);
    });
});

function nameOf({ kind, what }: Damage): string {
  return `${kind}: ${what}`;
}

async function chosenDamages(): Promise<readonly Damage[]> {
  const random = seededRandom(seed);
  const all = await allDamages();
  assert.ok(all.length > 400, `only ${all.length} damages`);
  if (only !== undefined) return all.filter((damage) => nameOf(damage).startsWith(only));
  return sweepsAll ? all : all.filter(() => random() < sampled / all.length);
}

async function allDamages(): Promise<readonly Damage[]> {
  const vandal = await openRedisVandal();
  try {
    await new Scene(vandal.store).prepare();
    return await vandal.damages();
  } finally {
    await vandal.close();
  }
}

/** Null where all went well. */
async function tryDamage(damage: Damage): Promise<string | null> {
  const vandal = await openRedisVandal();
  try {
    const scene = new Scene(vandal.store);
    await scene.prepare();
    await vandal.apply(damage);
    await scene.live();
    assert.deepEqual(await scene.missing(), [], "jobs that are gone without a trace");
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    await vandal.close();
  }
}
