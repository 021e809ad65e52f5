import { createEscapement, defineJob, type EnqueueReceipt } from "../src/index.ts";
import { systemRuntime } from "../src/runtime/runtime.ts";
import { checkRaw, checkStates, expect } from "./audit.ts";
import { counted } from "./counted.ts";
import { compare, interleave, type Plan, type Run, type Scenario, series, time } from "./scenario.ts";

const rawChunk = 1_000;
const later = defineJob<{ n: number }>({ name: "noop" });

type App = ReturnType<typeof createEscapement>;

/** How fast jobs come in when many parts of a program enqueue one each at the same time. */
export const enqueueConcurrent: Scenario = {
  name: "enqueue-concurrent",
  async run(plan) {
    const { calls } = plan;
    const { ours, raw } = await interleave(plan, {
      ours: () =>
        enqueueOurs(plan, calls, (app) =>
          Promise.all(Array.from({ length: calls }, (_, n) => app.enqueue(later, { n }))),
        ),
      raw: () => insertRaw(plan, calls),
    });
    return [
      compare({
        scenario: "enqueue-concurrent",
        what: `${calls} concurrent calls of enqueue, one job each`,
        unit: "jobs/s",
        ours: series("ours", ours),
        base: series(`raw inserts, ${rawChunk} a transaction`, raw),
        goal: { ratio: plan.bed.goals.enqueueConcurrent, is: "at least" },
      }),
    ];
  },
};

/** How fast one call brings many jobs in. */
export const enqueueMany: Scenario = {
  name: "enqueue-many",
  async run(plan) {
    const { jobs } = plan;
    const { ours, raw } = await interleave(plan, {
      ours: () =>
        enqueueOurs(plan, jobs, (app) =>
          app.enqueueMany(
            later,
            Array.from({ length: jobs }, (_, n) => ({ input: { n } })),
          ),
        ),
      raw: () => insertRaw(plan, jobs),
    });
    return [
      compare({
        scenario: "enqueue-many",
        what: `one enqueueMany of ${jobs} jobs`,
        unit: "jobs/s",
        ours: series("ours", ours),
        base: series(`raw inserts, ${rawChunk} a transaction`, raw),
        goal: { ratio: plan.bed.goals.enqueueMany, is: "at least" },
      }),
    ];
  },
};

async function enqueueOurs(
  { bed, durability }: Plan,
  jobs: number,
  enqueue: (app: App) => Promise<readonly EnqueueReceipt[]>,
): Promise<Run> {
  await using place = await bed.open(durability);
  const { store, calls } = counted(place.store);
  await using app = createEscapement({ store, jobs: [later] });
  await app.count();
  let receipts: readonly EnqueueReceipt[] = [];
  const { ms, cpuMs } = await time(async () => {
    receipts = await enqueue(app);
  });
  expect(receipts.filter(({ outcome }) => outcome === "added").length, jobs, "jobs added");
  expect(new Set(receipts.map(({ id }) => id)).size, jobs, "different ids");
  await checkStates(app, { waiting: jobs });
  return { value: (jobs / ms) * 1_000, ms, cpuMs, trips: calls("enqueue") };
}

async function insertRaw({ bed, durability }: Plan, jobs: number): Promise<Run> {
  await using place = await bed.open(durability);
  const raw = await place.openRaw();
  const { ms, cpuMs } = await time(() =>
    raw.insert(
      Array.from({ length: jobs }, (_, n) => ({ id: systemRuntime.newId(), input: JSON.stringify({ n }) })),
      rawChunk,
    ),
  );
  await checkRaw(raw, { left: jobs, finished: 0 });
  await raw.close();
  return { value: (jobs / ms) * 1_000, ms, cpuMs, trips: Math.ceil(jobs / rawChunk) };
}
