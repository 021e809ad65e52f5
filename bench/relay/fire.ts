import { encodeMessage, type Message } from "../../src/message/message.ts";
import type { ClaimedJob } from "../../src/store/claims.ts";
import { checkRaw, Dispatches } from "../audit.ts";
import type { RawJob } from "../beds/bed.ts";
import { compare, interleave, type Run, type Series, series, time } from "../scenario.ts";
import { median } from "../statistics.ts";
import type { Measured, RelayPlan, RelayScenario } from "./plan.ts";
import { RelayScene } from "./scene.ts";

/** Of the slower of the two that the relay does both of. */
const goal = { ratio: 0.35, is: "at least" } as const;
const insertChunk = 1_000;

/**
 * How fast the relay fires a backlog, beside the raw client that publishes the same messages without any store, beside a raw
 * loop that reads what is due and deletes it without any broker, and beside one that does both, which is what a relay without any
 * promise costs on this machine; all in batches as large as the relay's were on average.
 */
export const fire: RelayScenario = {
  name: "fire",
  async run(plan) {
    let ours: Run = { value: 0, batch: 1, named: 1 };
    const runs = await interleave(plan, {
      ours: async () => {
        ours = await fireOurs(plan);
        return ours;
      },
      publisher: () => publishRaw(plan, Math.max(1, Math.round(ours["batch"] ?? 1))),
      sweeper: () => sweepRaw(plan, Math.max(1, Math.round(ours["named"] ?? 1))),
      both: () => relayRaw(plan, Math.max(1, Math.round(ours["batch"] ?? 1))),
    });
    const bases = [
      series("raw client, no store", runs.publisher),
      series("raw due-read and delete, no broker", runs.sweeper),
    ];
    const slower = Math.min(...bases.map((base) => base.median));
    const finding = (base: Series) =>
      compare({
        scenario: "fire",
        what: `${plan.jobs} preloaded jobs, from resumeQueue() to the last one settled in the store; batches of the raw side as the relay's`,
        unit: "jobs/s",
        ours: series("ours", runs.ours),
        base,
        goal: base.median === slower ? goal : null,
      });
    bases.push(series("raw due-read, publish and delete", runs.both));
    return { findings: bases.map(finding), measured: measuredOf(runs.ours) };
  },
};

function measuredOf(runs: readonly Run[]): Measured {
  const medianOf = (detail: string): number => median(runs.map((run) => run[detail] ?? Number.NaN));
  return { sustained: medianOf("value"), enqueued: medianOf("enqueued") };
}

/** One firing alone, for those who only want to know how fast it is. */
export async function measureOnce(plan: RelayPlan): Promise<Measured> {
  await fireOurs(plan);
  return measuredOf([await fireOurs(plan)]);
}

async function fireOurs(plan: RelayPlan): Promise<Run> {
  const { jobs } = plan;
  await using scene = await RelayScene.open(plan, await plan.target.open());
  await scene.start();
  const enqueueMs = await scene.preload(jobs);
  const before = scene.counts;
  const { ms, cpuMs } = await time(() => scene.release());
  const after = scene.counts;
  await scene.audit();
  const checkpoints = after.checkpoints - before.checkpoints;
  const publishes = after.publishes - before.publishes;
  return {
    ...paceOf(jobs, ms, cpuMs),
    checkpoints,
    reads: after.reads - before.reads,
    publishes,
    batch: jobs / publishes,
    named: jobs / checkpoints,
    enqueued: (jobs / enqueueMs) * 1_000,
  };
}

function paceOf(jobs: number, ms: number, cpuMs: number) {
  return { value: (jobs / ms) * 1_000, ms, cpuMs, cpuUsPerJob: (cpuMs / jobs) * 1_000 };
}

async function publishRaw({ target, jobs }: RelayPlan, batch: number): Promise<Run> {
  await using destination = await target.open();
  await using raw = await destination.openRaw();
  const messages = Array.from({ length: jobs }, (_, n) =>
    messageOf(`raw-${n}`, n, destination.route.destination),
  );
  // Its connection is open before the clock starts, as ours is.
  await raw.publish([messageOf("warm", 0, destination.route.destination)]);
  const { ms, cpuMs } = await time(async () => {
    for (let start = 0; start < jobs; start += batch) await raw.publish(messages.slice(start, start + batch));
  });
  const arrivals = new Dispatches();
  for (const id of await destination.arrived()) arrivals.add(id);
  arrivals.check(["warm", ...messages.map((_, n) => `raw-${n}`)]);
  return { ...paceOf(jobs, ms, cpuMs), batch };
}

/** The message that the relay would make of such a job. */
function messageOf(id: string, n: number, destination: string): Message {
  const at = new Date();
  const job = { id, name: "task", queue: "tasks", delivery: "at-least-once", input: JSON.stringify({ n }) };
  const facts = { fireAt: at, attempt: 1, token: 1, redrives: 0, schedule: null };
  return encodeMessage("default", { ...job, ...facts } as ClaimedJob, {
    destination,
    key: id,
    publishedAt: at,
  });
}

function sweepRaw(plan: RelayPlan, batch: number): Promise<Run> {
  return sweep(plan, batch, () => {});
}

/** A relay as one would write it by hand, which loses or doubles jobs when anything fails. */
async function relayRaw(plan: RelayPlan, batch: number): Promise<Run> {
  await using destination = await plan.target.open();
  await using raw = await destination.openRaw();
  const { destination: address } = destination.route;
  await raw.publish([messageOf("warm", 0, address)]);
  const run = await sweep(plan, batch, (jobs) =>
    raw.publish(jobs.map(({ id, input }) => messageOf(id, JSON.parse(input).n, address))),
  );
  const arrivals = new Dispatches();
  for (const id of await destination.arrived()) arrivals.add(id);
  arrivals.check(["warm", ...Array.from({ length: plan.jobs }, (_, n) => `raw-${n}`)]);
  return run;
}

async function sweep(
  { bed, durability, jobs }: RelayPlan,
  batch: number,
  publish: (jobs: readonly RawJob[]) => void | Promise<void>,
): Promise<Run> {
  await using place = await bed.open(durability);
  const raw = await place.openRaw();
  const rows = Array.from({ length: jobs }, (_, n) => ({ id: `raw-${n}`, input: `{"n":${n}}` }));
  await raw.insert(rows, insertChunk);
  const seen = new Dispatches();
  let trips = 0;
  const { ms, cpuMs } = await time(async () => {
    trips = await raw.sweep(batch, (swept) => {
      for (const { id } of swept) seen.add(id);
      return publish(swept);
    });
  });
  seen.check(rows.map(({ id }) => id));
  await checkRaw(raw, { left: 0, finished: 0 });
  await raw.close();
  return { ...paceOf(jobs, ms, cpuMs), trips, batch };
}
