import { createEscapement, defineJob } from "../src/index.ts";
import { systemRuntime } from "../src/runtime/runtime.ts";
import { checkRaw, checkStates, Dispatches, within } from "./audit.ts";
import { counted } from "./counted.ts";
import { compare, interleave, type Plan, type Run, type Scenario, series, time } from "./scenario.ts";

const concurrency = 100;
const deadlineMs = 300_000;

/** How fast an app empties a full queue of jobs that do nothing: the price of everything around a handler. */
export const drain: Scenario = {
  name: "drain",
  async run(plan) {
    const { ours, raw } = await interleave(plan, { ours: () => drainOurs(plan), raw: () => drainRaw(plan) });
    return [
      compare({
        scenario: "drain",
        what: `${plan.jobs} preloaded jobs, concurrency ${concurrency}, from resumeQueue() to the last outcome written`,
        unit: "jobs/s",
        ours: series("ours", ours),
        base: series("raw loop", raw),
        goal: { ratio: plan.bed.goals.drain, is: "at least" },
      }),
    ];
  },
};

async function drainOurs({ bed, durability, jobs }: Plan): Promise<Run> {
  await using place = await bed.open(durability);
  const dispatches = new Dispatches();
  const noop = defineJob<{ n: number }>({ name: "noop", run: ({ job }) => dispatches.add(job.id) });
  const { store, calls } = counted(place.store);
  await using app = createEscapement({ store, jobs: [noop], concurrency });
  // The raw loop's connection is open and its statements are prepared when its clock starts; so are ours.
  await app.pauseQueue(noop.queue);
  const { ms: startMs } = await time(() => app.start());
  const receipts = await app.enqueueMany(
    noop,
    Array.from({ length: jobs }, (_, n) => ({ input: { n } })),
  );
  let written = 0;
  const last = Promise.withResolvers<void>();
  app.on("succeeded", () => {
    written += 1;
    if (written === jobs) last.resolve();
  });
  const before = calls("step");
  const { ms, cpuMs } = await time(async () => {
    await app.resumeQueue(noop.queue);
    await within(deadlineMs, "the drain", last.promise);
  });
  const trips = calls("step") - before;
  dispatches.check(receipts.map(({ id }) => id));
  await checkStates(app, { succeeded: jobs });
  const withStart = (jobs / (ms + startMs)) * 1_000;
  return { value: (jobs / ms) * 1_000, ms, cpuMs, trips, startMs, withStart };
}

async function drainRaw({ bed, durability, jobs }: Plan): Promise<Run> {
  await using place = await bed.open(durability);
  const dispatches = new Dispatches();
  const raw = await place.openRaw();
  const rows = Array.from({ length: jobs }, (_, n) => ({ id: systemRuntime.newId(), input: `{"n":${n}}` }));
  await raw.insert(rows, 1_000);
  let trips = 0;
  const { ms, cpuMs } = await time(async () => {
    trips = await raw.drain(concurrency, ({ id }) => dispatches.add(id));
  });
  dispatches.check(rows.map(({ id }) => id));
  await checkRaw(raw, { left: 0, finished: jobs });
  await raw.close();
  return { value: (jobs / ms) * 1_000, ms, cpuMs, trips };
}
