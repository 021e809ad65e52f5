import type { Delivery, JobState } from "../../job.ts";
import { isTerminal } from "../../state.ts";
import type { NewJob, Retention } from "../../store/jobs.ts";
import type { JobFilter } from "../../store/questions.ts";
import { newJob } from "../conformance/scene.ts";
import { type Operation, operation, pages } from "./operation.ts";
import {
  type At,
  expiry,
  lease,
  namedRemainderMs,
  ownRetentions,
  retention,
  spans,
  stepMs,
  uniqueWindow,
} from "./time.ts";
import { jobNames, queueNames, type World } from "./world.ts";

const deliveries: readonly [Delivery, ...Delivery[]] = ["at-least-once", "at-most-once", "effectively-once"];

/** A job out of few ids, keys and queues, so that they meet. As the contract says, keys carry the job's name. */
export function randomJob(world: World, id: string): (at: At) => NewJob {
  const { chance } = world;
  const runAtMs = world.nowMs + (chance.below(8) - 4) * stepMs + namedRemainderMs;
  const hasTime = chance.oneIn(4);
  const isRelayed = chance.oneIn(6);
  const name = chance.pick(jobNames);
  const fixed: Partial<NewJob> = {
    name,
    queue: chance.pick(queueNames),
    delivery: chance.pick(deliveries),
    input: String(chance.below(1_000)),
    priority: chance.pick([0, 0, 0, 5, -5]),
    tags: chance.some(["x", "y"]),
    delayMs: chance.pick([0, 0, spans.short, spans.long]),
    expireInMs: chance.oneIn(5) ? expiry : null,
    maxCrashes: chance.pick([1, 2, 3]),
    after: chance.oneIn(5) ? chance.times(1, 2, () => world.id()) : [],
    afterFailure: chance.pick(["cancel", "run"]),
    unique: chance.oneIn(3)
      ? { key: chance.pick([`${name}:u1`, `${name}:u2`]), forMs: chance.pick([null, uniqueWindow]) }
      : null,
    debounce: chance.oneIn(7)
      ? {
          key: chance.pick([`${name}:d1`, `${name}:d2`]),
          waitMs: spans.debounce,
          maxMs: chance.pick([null, spans.debounceMax]),
        }
      : null,
    concurrencyKey: chance.oneIn(4) ? chance.pick([`${name}:k1`, `${name}:k2`]) : null,
    rateKey: chance.oneIn(4) ? chance.pick([`${name}:r1`, `${name}:r2`]) : null,
    retention: chance.oneIn(4) ? randomRetention(world) : null,
    relayed: isRelayed,
    slot: chance.below(1_024),
    schedule: chance.oneIn(9) ? "s1" : null,
  };
  return (at) => newJob(id, { ...fixed, runAt: hasTime ? at(runAtMs) : null });
}

function randomRetention({ chance }: World): Retention {
  const kept = () => chance.pick([null, 0, ...ownRetentions]);
  return { succeededMs: kept(), cancelledMs: kept(), deadMs: kept(), lostMs: kept() };
}

export function enqueueOperation(world: World): Operation {
  const jobs = world.chance.times(0, 4, () => randomJob(world, world.id()));
  const allOrNone = world.chance.oneIn(3);
  return operation(
    allOrNone ? "enqueue all or none" : "enqueue",
    (at) => ({ jobs: jobs.map((job) => job(at)), allOrNone }),
    (store, params) => store.enqueue(params),
  );
}

export async function updateOperation(world: World): Promise<Operation> {
  const { chance } = world;
  const id = world.id();
  const [job] = await world.first.get({ ids: [id] });
  const name = job?.name ?? "work";
  const change = {
    id,
    ...(chance.oneIn(2) ? { input: String(chance.below(1_000)) } : {}),
    ...(chance.oneIn(3) ? { delayMs: chance.pick([0, spans.update]) } : {}),
    ...(chance.oneIn(3) ? { priority: chance.pick([-5, 0, 5]) } : {}),
    ...(chance.oneIn(4) ? { concurrencyKey: chance.pick([null, `${name}:k1`, `${name}:k2`]) } : {}),
    ...(chance.oneIn(4) ? { rateKey: chance.pick([null, `${name}:r1`, `${name}:r2`]) } : {}),
  };
  const runAtMs = world.nowMs + chance.below(8) * stepMs + namedRemainderMs;
  const hasTime = chance.oneIn(5);
  return operation(
    "update",
    (at) => ({ ...change, ...(hasTime ? { runAt: at(runAtMs) } : {}) }),
    (store, params) => store.update(params),
  );
}

function randomFilter(world: World): JobFilter {
  const { chance } = world;
  return {
    ...(chance.oneIn(3) ? { queues: [chance.pick(queueNames)] } : {}),
    ...(chance.oneIn(3) ? { names: [chance.pick(jobNames)] } : {}),
    ...(chance.oneIn(3) ? { tags: chance.some(["x", "y"]) } : {}),
    ...(chance.oneIn(3)
      ? { states: chance.some(["waiting", "active", "dead", "succeeded", "cancelled"]) }
      : {}),
    ...(chance.oneIn(4) ? { deliveries: [chance.pick(deliveries)] } : {}),
    ...(chance.oneIn(5) ? { ids: chance.times(0, 5, () => world.id()) } : {}),
    ...(chance.oneIn(8) ? { schedule: "s1" } : {}),
  };
}

/** Cancel, redrive or remove, by ids or by a filter, all its pages. */
export async function selectOperation(
  world: World,
  verb: "cancel" | "redrive" | "remove",
): Promise<Operation> {
  const { chance } = world;
  const fits = (state: JobState): boolean =>
    verb === "remove" ? isTerminal(state) : state === "dead" || state === "lost";
  const fitting = (await world.jobs()).filter(({ state }) => fits(state));
  const reason = chance.pick([null, "because"]);
  if (!chance.oneIn(5)) {
    const anyId = (): string => chance.pickFrom(fitting)?.id ?? world.id();
    const ids = chance.times(0, 3, () => (verb === "cancel" ? world.id() : anyId()));
    return operation(
      verb,
      () => ({ select: { ids }, reason }),
      (store, params) => store[verb](params),
    );
  }
  const filter = { ...randomFilter(world), tags: chance.pick([["x"], ["x", "y"]]) };
  const limit = chance.pick([1, 2, 100]);
  return operation(
    `${verb} by filter`,
    () => ({ filter, limit, reason }),
    (store) =>
      pages<unknown>(async (cursor) => {
        const page = await store[verb]({ select: { filter, limit, cursor }, reason });
        return { items: page.results, cursor: page.cursor };
      }),
  );
}

export function questionOperation(world: World): Operation {
  const { chance } = world;
  const filter = randomFilter(world);
  const runBeforeMs = world.nowMs + namedRemainderMs - 3 * 60_000;
  const bounded = chance.oneIn(3);
  const full = (at: At): JobFilter => ({ ...filter, ...(bounded ? { runBefore: at(runBeforeMs) } : {}) });
  if (chance.oneIn(3)) {
    const ids = chance.times(0, 5, () => world.id());
    return operation(
      "get",
      () => ({ ids }),
      (store, params) => store.get(params),
    );
  }
  if (chance.oneIn(3)) {
    const by = chance.some(["state", "queue", "name"] as const);
    return operation(
      "count",
      (at) => ({ filter: full(at), by }),
      (store, params) => store.count(params),
    );
  }
  const order = chance.pick(["newest", "oldest"] as const);
  const limit = chance.pick([1, 3, 100]);
  return operation(
    "list",
    (at) => ({ filter: full(at), limit, order }),
    (store, params) =>
      pages(async (cursor) => {
        const page = await store.list({ ...params, cursor });
        return { items: page.jobs, cursor: page.cursor };
      }),
  );
}

/** How much of limits is used, asked of keys that claims count. */
export function usageOperation(world: World): Operation {
  const { chance } = world;
  const name = chance.pick(jobNames);
  const params = {
    queue: chance.pick(queueNames),
    concurrencyKey: chance.pick([null, `${name}:k1`, `${name}:k2`]),
    rateKey: chance.pick([null, `${name}:r1`, `${name}:r2`]),
  };
  return operation(
    "usage",
    () => params,
    (store) => store.usage(params),
  );
}

export function reapOperation(world: World): Operation {
  const limit = world.chance.pick([1_000, 1_000, 2]);
  return operation(
    "reap",
    () => ({ limit }),
    (store, params) =>
      pages(async () => {
        const { reaped, more } = await store.reap(params);
        return { items: reaped, cursor: more ? "more" : null };
      }),
  );
}

/** Marks of different stores cannot be compared, so each is asked for its own. */
export function reapUntilOperation(world: World): Operation {
  const agoMs = world.chance.pick([0, lease, 3 * lease]);
  return operation(
    "reap",
    () => ({ limit: 1_000 }),
    async (store, params) => {
      const { mark } = await store.reap({ ...params, until: 0 });
      const { reaped, more } = await store.reap({ ...params, until: mark - agoMs });
      return { reaped, more };
    },
  );
}

export function pruneOperation(world: World): Operation {
  const { chance } = world;
  const kept = () => chance.pick([0, retention, retention]);
  const params = {
    succeededMs: kept(),
    cancelledMs: kept(),
    deadMs: kept(),
    lostMs: kept(),
    nodesMs: retention,
    occurrencesMs: retention,
    auditMs: retention,
    limit: chance.pick([1_000, 3]),
  };
  return operation(
    "prune",
    () => params,
    (store) =>
      pages(async () => {
        const { pruned, more } = await store.prune(params);
        return { items: Array.from({ length: pruned }, () => "pruned"), cursor: more ? "more" : null };
      }),
  );
}
