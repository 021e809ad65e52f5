import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { maxCount } from "../../src/state.ts";
import { TestEscapement } from "../../src/testing/kit.ts";
import { seededRandom } from "../../src/testing/seeded-random.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { ScriptedTransport } from "../behaviour/scripted-transport.ts";
import { Scene } from "./scene.ts";
import { type Column, type Vandal, type VandalKind, vandals } from "./sql-vandals.ts";
import { sweepsAll, sweepsFiles } from "./sweep.ts";

/** By hand every run tries other columns. CI judges a change, so it tries the same ones each time. */
const seed = Number(
  process.env["ESCAPEMENT_SEED"] ?? (process.env["CI"] === "true" ? 1 : Date.now() % 100_000),
);
/** How many columns the short form tries on each store. */
const sampled = 30;
/** A sweep is split into several tests, so none comes near the runner's time limit. */
const maxParts = sweepsAll ? 32 : 6;
/** `partitions.lease`, to try every value in the columns whose table and name contain it. */
const onlyColumn = process.env["ESCAPEMENT_FUZZ_COLUMN"];

const garbage: Readonly<Record<Column["kind"], readonly (string | number)[]>> = {
  text: ["{not json", "nonsense", "5", '{"a":[]}', "null", ""],
  number: [
    -1,
    Number.MIN_SAFE_INTEGER,
    -7_000_000,
    0,
    3_000_000_000,
    9e15,
    Number.MAX_SAFE_INTEGER,
    2_147_483_647,
    // The highest that tables take.
    maxCount,
    // What no number here holds exactly.
    "9223372036854775807",
    "-9223372036854775808",
  ],
  flag: [0, 1],
  texts: ["{not json"],
};

function fuzz({ name, skip, open }: VandalKind): void {
  describe(`rows that somebody else has written to (${name})`, { skip }, () => {
    before(() => {
      // Time is virtual, but each poll in it is a real trip.
      process.env["ESCAPEMENT_POLL"] = "10s";
    });
    after(() => {
      delete process.env["ESCAPEMENT_POLL"];
    });
    test("jobs with tags that are no JSON run, and so do their neighbours", async () => {
      const ran = await ranBeside(open, "tags", "{not json");
      assert.ok(ran.includes("rated"));
    });

    test("jobs with an unknown delivery guarantee are not dispatched, and their neighbours are", async (t) => {
      const ran = await ranBeside(open, "delivery", "nonsense");
      if (ran.length === 0) return t.skip("the column takes known words only");
      assert.ok(!ran.includes("rated"));
    });

    test("a relay publishes beside jobs with an unknown delivery guarantee, and ends those", async (t) => {
      const vandal = await open();
      const clock = new VirtualClock();
      const broker = new ScriptedTransport(clock);
      const pay = defineJob<unknown>({ name: "pay", route: broker.route() });
      const relay = { partitions: 2 };
      const app = new TestEscapement({ store: vandal.store, jobs: [pay], relay, log: silentLogger }, clock);
      await app.enqueue(pay, 1, { id: "victim" });
      const column = (await vandal.columns()).find(
        ({ table, column: own }) => /jobs$/.test(table) && own === "delivery",
      );
      assert(column !== undefined);
      const isWritten = await isTaken(vandal, column, "nonsense");
      if (isWritten) {
        await app.enqueue(pay, 1, { id: "healthy" });
        await app.start({ roles: ["relay"] });
        await clock.advance(5_000);
        assert.deepEqual(broker.ids, ["healthy"]);
        assert.equal((await app.get("victim"))?.state, "dead");
        assert.equal((await app.get("healthy"))?.state, "succeeded");
      } else t.skip("the column takes known words only");
      await app[Symbol.asyncDispose]();
      await vandal.close();
    });

    const isWhole = name === "sqlite" ? sweepsFiles : sweepsAll;
    const parts = isWhole ? maxParts : 1;
    for (let part = 0; part < parts; part += 1)
      test(`whatever stands in one column, what is healthy goes on (seed ${seed}, part ${part + 1} of ${parts})`, async (t) => {
        const cases = (await casesOf(open, isWhole)).filter((_, place) => place % parts === part);
        const failures: string[] = [];
        const since = performance.now();
        for (const { column, value } of cases) {
          const failure = await tryColumn(open, column, value);
          if (failure !== null)
            failures.push(
              `seed ${seed}, ${column.table}.${column.column} = ${JSON.stringify(value)}: ${failure}`,
            );
        }
        t.diagnostic(`${cases.length} cases in ${Math.round(performance.now() - since)} ms`);
        assert.deepEqual(failures, []);
      });
  });
}

interface Case {
  readonly column: Column;
  readonly value: string | number;
}

/** The highest that most columns take. From there nothing can rise. */
const highest = [Number.MAX_SAFE_INTEGER, maxCount];

/** One value for each column, by the seed, and for numbers the highest too; all values in a whole sweep, and for the columns that were asked for. */
async function casesOf(open: VandalKind["open"], isWhole: boolean): Promise<readonly Case[]> {
  const random = seededRandom(seed);
  const all = await columnsOf(open);
  assert.ok(all.length > 100, `only ${all.length} columns`);
  const asked = all.filter(({ table, column }) => `${table}.${column}`.includes(onlyColumn ?? ""));
  if (onlyColumn !== undefined || sweepsAll)
    return asked.flatMap((column) => garbage[column.kind].map((value) => ({ column, value })));
  // The short form has some of them, by the seed.
  const some = isWhole ? all : all.filter(() => random() < sampled / all.length);
  return some.flatMap((column) => {
    const values = garbage[column.kind];
    const some = [
      values[Math.floor(random() * values.length)] ?? "",
      ...(column.kind === "number" ? highest : []),
    ];
    return [...new Set(some)].map((value) => ({ column, value }));
  });
}

/** The ids of what was dispatched with this in a column of all jobs but the healthy; none where the column does not take it. */
async function ranBeside(open: VandalKind["open"], name: string, value: string): Promise<readonly string[]> {
  const vandal = await open();
  try {
    const scene = new Scene(vandal.store);
    await scene.prepare();
    const column = (await vandal.columns()).find(
      ({ table, column: own }) => /jobs$/.test(table) && own === name,
    );
    assert(column !== undefined);
    if (!(await isTaken(vandal, column, value))) return [];
    await scene.live();
    return scene.ran;
  } finally {
    await vandal.close();
  }
}

function isTaken(vandal: Vandal, column: Column, value: string | number): Promise<boolean> {
  return vandal.write(column, value).then(
    () => true,
    () => false,
  );
}

async function columnsOf(open: VandalKind["open"]): Promise<readonly Column[]> {
  const vandal = await open();
  try {
    await new Scene(vandal.store).prepare();
    return await vandal.columns();
  } finally {
    await vandal.close();
  }
}

/** A job whose row names another namespace or id is that one's, and one that ended long ago is forgotten. */
const mayHide = /^(ns|id|state|finished_at|forget_at|kind)$/;

/** Null where all went well, or the column does not take the value. */
async function tryColumn(
  open: VandalKind["open"],
  column: Column,
  value: string | number,
): Promise<string | null> {
  const vandal = await open();
  try {
    const scene = new Scene(vandal.store);
    await scene.prepare();
    if (!(await isTaken(vandal, column, value))) return null;
    await scene.live();
    if (!mayHide.test(column.column))
      assert.deepEqual(await scene.missing(), [], "jobs that are gone without a trace");
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    await vandal.close();
  }
}

const only = process.env["ESCAPEMENT_FUZZ_STORE"];
for (const kind of vandals) if (only === undefined || only === kind.name) fuzz(kind);
