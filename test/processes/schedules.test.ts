import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { createEscapement, defineJob, type Escapement, type JobDefinition } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { type Server, testbed } from "../../testbed/index.ts";
import { isFull } from "../full.ts";
import { end, Fleet } from "./fleet.ts";

/** How long the every-second schedule is watched. */
const seconds = Number(process.env["ESCAPEMENT_SCHEDULE_SECONDS"] ?? (isFull ? 6 : 3));
/** Processes that plan at once. */
const processes = isFull ? 5 : 3;
/** How many schedules are due on one second. */
const herds =
  process.env["ESCAPEMENT_SCHEDULE_SECONDS"] === undefined ? [isFull ? 1_000 : 200] : [1_000, 10_000];
const quick = { ms: 0, how: "wait" } as const;

/** Where nobody else's jobs are; undefined for a SQLite file of the fleet's own. */
type Place = (context: TestContext) => Promise<{ readonly store?: string }>;

const places: Readonly<Record<string, Place>> = {
  "one SQLite file": async () => ({}),
  Postgres: async (context) => placeOn(context, await testbed.postgres()),
  "MariaDB or MySQL": async (context) => placeOn(context, await testbed.mysql()),
  Redis: async (context) => {
    const { store } = placeOn(context, await testbed.redis());
    return store === undefined ? {} : { store: `${store}?prefix=${(await testbed.redis()).name}` };
  },
};

function placeOn(context: TestContext, server: Server): { readonly store?: string } {
  if (server.skip === false) return { store: server.url };
  context.skip(server.skip);
  return {};
}

/** The ledger of the schedule has a row for each second, and none twice. */
function assertContiguous(fireTimes: readonly Date[]): void {
  const steps = fireTimes.slice(1).map((at, index) => at.getTime() - (fireTimes[index]?.getTime() ?? 0));
  assert.deepEqual([...new Set(steps)], [1_000], "every second once");
}

async function allEnded(fleet: Fleet): Promise<void> {
  await fleet.until(
    "all have ended",
    async () => (await fleet.client.count({ states: ["waiting", "active"] })) === 0,
  );
}

// The stores side by side: it is seconds that are waited for.
describe("schedules over real processes", { concurrency: seconds > 30 ? 4 : 2 }, () => {
  for (const [name, place] of Object.entries(places)) {
    describe(`on ${name}`, { concurrency: 1 }, () => {
      test(`${processes} processes, no leader, every second for ${seconds} s: one job a second [K1, K11]`, async (context) => {
        await using fleet = new Fleet({ lease: 30_000, ...(await place(context)) });
        await Promise.all(Array.from({ length: processes }, () => fleet.start()));
        await fleet.client.schedule("beat", { every: "1s", misfire: "all" }, fleet.atMostOnce, quick);
        await fleet.until(
          "enough seconds have passed",
          async () => (await fleet.client.occurrences("beat")).length >= seconds,
          300_000,
        );
        await fleet.client.unschedule("beat");
        await allEnded(fleet);
        const rows = await fleet.client.occurrences("beat");
        assertContiguous(rows.map(({ fireAt }) => fireAt));
        assert.deepEqual([...new Set(rows.map(({ fate }) => fate))], ["succeeded"]);
        const starts = fleet.starts().map(({ id }) => id);
        assert.equal(starts.length, rows.length);
        assert.deepEqual(new Set(starts), new Set(rows.map(({ jobId }) => jobId)));
        context.diagnostic(`${name}: ${rows.length} seconds, ${starts.length} starts`);
      });

      test("the same with a process killed every 3 s: no second is missed, none is planned twice [K5, K11]", async (context) => {
        await using fleet = new Fleet({ lease: 4_000, ...(await place(context)) });
        const nodes = await Promise.all(Array.from({ length: processes }, () => fleet.start()));
        await fleet.client.schedule("beat", { every: "1s", misfire: "all" }, fleet.atLeastOnce, quick);
        const began = performance.now();
        let kills = 0;
        while (performance.now() - began < seconds * 1_000) {
          kills += 1;
          await fleet.until("three seconds more", () => performance.now() - began > kills * 3_000);
          const victim = nodes.shift();
          if (victim !== undefined) await end(victim);
          nodes.push(await fleet.start());
        }
        await fleet.client.unschedule("beat");
        await allEnded(fleet);
        const rows = await fleet.client.occurrences("beat");
        assert.ok(rows.length >= seconds - 1);
        assertContiguous(rows.map(({ fireAt }) => fireAt));
        assert.deepEqual([...new Set(rows.map(({ fate }) => fate))], ["succeeded"]);
        context.diagnostic(`${name}: ${rows.length} seconds, ${kills} kills, none missed`);
      });
    });
  }
});

/** How many schedules are made at a time. */
const abreast = 20;

/** Puts so many schedules on one second. A machine that is too slow to do so before that second tries a later one. */
async function gather(app: Escapement, job: JobDefinition<null>, size: number) {
  for (let leadMs = 5_000 + 6 * size; ; leadMs *= 2) {
    const at = new Date(Date.now() + leadMs);
    const herd = Array.from({ length: size }, (_, n) => `in ${leadMs} ms, ${n}`);
    const results: PromiseSettledResult<unknown>[] = [];
    // A few at a time: on a slow machine a thousand calls at once wait longer for a connection than a call may take.
    for (let start = 0; start < size; start += abreast) {
      const keys = herd.slice(start, start + abreast);
      results.push(...(await Promise.allSettled(keys.map((key) => app.schedule(key, { at }, job, null)))));
    }
    if (results.every(({ status }) => status === "fulfilled") && Date.now() < at.getTime())
      return { at, herd };
    for (const result of results)
      if (result.status === "rejected") assert.match(String(result.reason), /would never fire/);
  }
}

// How late the last one is, is worth reading only when nothing else goes on.
describe("schedules that are due together", { concurrency: herds.length > 1 ? 1 : 4 }, () => {
  for (const [name, place] of Object.entries(places)) {
    for (const size of herds) {
      test(`${size} of them on one second are each dispatched once, on ${name}`, async (context) => {
        await using fleet = new Fleet({ lease: 30_000, ...(await place(context)) });
        const runs = new Map<string, number>();
        let lastAt = 0;
        const job = defineJob<null>({
          name: "herd",
          run: ({ job: { schedule } }) => {
            runs.set(schedule ?? "", (runs.get(schedule ?? "") ?? 0) + 1);
            lastAt = Date.now();
          },
        });
        await using app = createEscapement({
          store: fleet.store,
          jobs: [job],
          concurrency: 100,
          log: silentLogger,
        });
        await app.start();
        const { at, herd } = await gather(app, job, size);
        await fleet.until("all have run", () => herd.every((key) => runs.has(key)), 300_000);
        assert.ok([...runs.values()].every((times) => times === 1));
        context.diagnostic(`${name}: the last of ${size} started ${lastAt - at.getTime()} ms after its time`);
      });
    }
  }
});
