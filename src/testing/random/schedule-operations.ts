import type { NewOccurrence } from "../../store/schedules.ts";
import { randomJob } from "./job-operations.ts";
import { type Operation, operation } from "./operation.ts";
import { type At, namedRemainderMs, nodeLife, rateWindow, stepMs } from "./time.ts";
import { jobNames, queueNames, scheduleKeys, type World } from "./world.ts";

export function queueOperation(world: World): Operation {
  const { chance } = world;
  const change = {
    queue: chance.pick(queueNames),
    ...(chance.oneIn(2) ? { paused: chance.oneIn(3) } : {}),
    ...(chance.oneIn(3) ? { concurrency: chance.pick([null, 2, 4]) } : {}),
    ...(chance.oneIn(3) ? { rate: chance.pick([null, { limit: 3, perMs: rateWindow }]) } : {}),
  };
  return operation(
    "configureQueue",
    () => change,
    (store, params) => store.configureQueue(params),
  );
}

export function nodeOperation(world: World): Operation {
  const { chance } = world;
  const id = chance.pick(["n1", "n2", "n3"]);
  if (chance.oneIn(4)) {
    return operation(
      "removeNode",
      () => ({ id }),
      (store, params) => store.removeNode(params),
    );
  }
  const node = {
    id,
    host: "here",
    pid: chance.below(100),
    version: "1",
    roles: chance.some(["worker", "reaper"]),
    queues: chance.pick([null, [...queueNames]]),
    names: [...jobNames],
    concurrency: 5,
    active: chance.below(5),
    ttlMs: nodeLife,
  };
  return operation(
    "putNode",
    () => node,
    (store, params) => store.putNode(params),
  );
}

export async function scheduleOperation(world: World, baseMs: number): Promise<Operation> {
  const { chance } = world;
  const key = chance.pick(scheduleKeys);
  if (chance.oneIn(8)) {
    return operation(
      "removeSchedule",
      () => ({ key }),
      (store, params) => store.removeSchedule(params),
    );
  }
  if (chance.oneIn(4)) {
    return operation(
      "dueSchedules",
      () => ({ limit: 10 }),
      (store, params) => store.dueSchedules(params),
    );
  }
  const standing = (await world.first.schedules({ keys: null })).find((schedule) => schedule.key === key);
  const ifVersion = chance.oneIn(4) ? chance.pick([null, 1, 2]) : (standing?.version ?? null);
  const standsAt = standing?.nextAt ?? null;
  const ifNextMs = standsAt === null ? null : standsAt.getTime() - baseMs + (chance.oneIn(8) ? stepMs : 0);
  const nextMs = world.nowMs + (chance.below(6) - 2) * stepMs + namedRemainderMs;
  const ends = chance.oneIn(6);
  const rest = {
    key,
    spec: String(chance.below(100)),
    job: "{}",
    paused: chance.oneIn(5),
    ifVersion,
    node: "editor",
  };
  const skipped = chance
    .times(0, 2, () => randomOccurrence(world, nextMs - stepMs))
    .map(
      (one) =>
        (at: At): NewOccurrence => ({ ...one(at), fate: "skipped", reason: "paused", job: null }),
    );
  return operation(
    "putSchedule",
    (at) => ({
      ...rest,
      ifNextAt: ifNextMs === null ? null : at(ifNextMs),
      nextAt: ends ? null : at(nextMs),
      skipped: skipped.map((one) => one(at)),
    }),
    (store, params) => store.putSchedule(params),
  );
}

/** Fires what stands in the first store, sometimes with an old version or a wrong time. */
export async function fireOperation(world: World, baseMs: number): Promise<Operation> {
  const { chance } = world;
  const standing = await world.first.schedules({ keys: null });
  const schedule = chance.pickFrom(standing.filter(({ nextAt }) => nextAt !== null));
  const nextMs = (schedule?.nextAt?.getTime() ?? baseMs) - baseMs;
  const occurrences = chance.times(0, 3, () =>
    randomOccurrence(world, nextMs + (chance.below(3) - 1) * stepMs),
  );
  const fixed = {
    key: schedule?.key ?? "s1",
    version: (schedule?.version ?? 1) - (chance.oneIn(6) ? 1 : 0),
    replaceSkipped: chance.oneIn(3),
  };
  const offMs = chance.oneIn(8) ? stepMs : 0;
  const advanceMs = nextMs + (1 + chance.below(3)) * stepMs;
  const ends = chance.oneIn(8);
  return operation(
    "fire",
    (at) => ({
      ...fixed,
      nextAt: at(nextMs + offMs),
      occurrences: occurrences.map((occurrence) => occurrence(at)),
      advanceTo: ends ? null : at(advanceMs),
    }),
    (store, params) => store.fire({ node: "planner", fires: [params] }),
  );
}

function randomOccurrence(world: World, fireMs: number): (at: At) => NewOccurrence {
  const { chance } = world;
  const skipped = chance.oneIn(4);
  const job = randomJob(world, chance.oneIn(2) ? world.id() : `{s}@${fireMs}`);
  return (at) => ({
    fireAt: at(fireMs),
    until: skipped ? at(fireMs + stepMs) : null,
    count: skipped ? 2 : 1,
    fate: skipped ? "skipped" : "planned",
    reason: skipped ? "misfire" : null,
    job: skipped ? null : job(at),
  });
}
