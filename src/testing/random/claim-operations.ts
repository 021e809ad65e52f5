import type { Outcome } from "../../state.ts";
import type { ClaimName, ClaimParams, Finish } from "../../store/claims.ts";
import type { StoredJob } from "../../store/jobs.ts";
import { randomJob } from "./job-operations.ts";
import { type Operation, operation } from "./operation.ts";
import { lease, rateWindow, shortLease, spans } from "./time.ts";
import { claimers, jobNames, queueNames, type World } from "./world.ts";

const limits: Readonly<Record<string, ClaimName>> = {
  work: { name: "work", concurrency: 1, rate: { limit: 1, perMs: rateWindow } },
  other: { name: "other", concurrency: 2, rate: null },
};

/** A store may look only at as many lanes as the claim's limit; only above that are answers bound to agree. */
function lanesIn(jobs: readonly StoredJob[]): number {
  const waiting = jobs.filter(({ state, relayed }) => state === "waiting" && !relayed);
  const keys = waiting.map(({ concurrencyKey, rateKey }) =>
    concurrencyKey === null ? rateKey && `rate ${rateKey}` : `concurrency ${concurrencyKey}`,
  );
  return new Set(keys.filter((key) => key !== null)).size;
}

async function randomClaim(world: World): Promise<ClaimParams> {
  const { chance } = world;
  const claimer = chance.pick(claimers);
  const last = world.sequences.get(claimer) ?? 0;
  const sequence = chance.oneIn(6) ? Math.max(1, last - chance.below(2)) : last + 1;
  world.sequences.set(claimer, Math.max(last, sequence));
  const names = chance.oneIn(3) ? [chance.pick(jobNames)] : jobNames;
  const lanes = lanesIn(await world.jobs());
  // While a lane is ready, stores may differ in what they take ahead.
  const ahead = lanes === 0 ? chance.pick([0, 2, 5]) : 0;
  return {
    claimer,
    sequence,
    leaseMs: chance.pick([lease, shortLease]),
    limit: Math.max(chance.pick(ahead > 0 ? [0, 1, 3] : [1, 3, 10]), lanes),
    ahead,
    queues: chance.oneIn(3) ? queueNames.map((queue) => ({ queue, limit: chance.below(3) })) : null,
    names: names.flatMap((name) => limits[name] ?? []),
    alone: chance.oneIn(3),
  };
}

export async function claimOperation(world: World): Promise<Operation> {
  const params = await randomClaim(world);
  return operation(
    "claim",
    () => params,
    async (store) => {
      const answer = await store.claim(params);
      if (store === world.first) world.remember(params.claimer, answer.jobs);
      return answer;
    },
  );
}

export async function stepOperation(world: World): Promise<Operation> {
  const claim = await randomClaim(world);
  const finishes = randomFinishes(world);
  return operation(
    "step",
    () => ({ finishes, claim }),
    async (store, params) => {
      const answer = await store.step(params);
      if (store === world.first) world.remember(claim.claimer, answer.claimed.jobs);
      return answer;
    },
  );
}

function randomOutcome(world: World): Outcome {
  const { chance } = world;
  const error = `"error ${chance.below(100)}"`;
  return chance.pick<Outcome>([
    { kind: "succeed", result: chance.pick([null, "1"]) },
    { kind: "succeed", result: null },
    { kind: "succeed", result: null, notKept: "result not kept: too long" },
    { kind: "die", reason: "no use", error },
    { kind: "die", reason: "no use", error },
    { kind: "release" },
    { kind: "release", delayMs: spans.retry, error },
    { kind: "crash", reason: "gone" },
    { kind: "lose", reason: "nobody knows" },
    { kind: "retry", delayMs: chance.pick([0, spans.retry]), error },
    { kind: "snooze", delayMs: spans.snooze },
    { kind: "rollback", delayMs: spans.retry, error },
  ]);
}

export function randomFinishes(world: World): Finish[] {
  return world.chance.times(0, 3, () => {
    const { id, token } = world.claim();
    return { id, token, outcome: randomOutcome(world) };
  });
}

export function finishOperation(world: World): Operation {
  const { claimer, id, token } = world.claim();
  const finishes = [{ id, token, outcome: randomOutcome(world) }, ...randomFinishes(world)];
  return operation(
    "finish",
    () => ({ claimer, finishes }),
    (store, params) => store.finish(params),
  );
}

export function extendOperation(world: World): Operation {
  const { claimer } = world.claim();
  const claims = world.chance.times(0, 3, () => world.claim()).map(({ id, token }) => ({ id, token }));
  return operation(
    "extend",
    () => ({ claimer, leaseMs: lease, claims }),
    (store, params) => store.extend(params),
  );
}

export function reportOperation(world: World): Operation {
  const { chance } = world;
  const { claimer, id, token } = world.claim();
  const lines = chance.times(0, 3, () => `line ${chance.below(100)}`);
  const progress = chance.oneIn(2) ? { progress: String(chance.below(100)) } : {};
  return operation(
    "report",
    () => ({ claimer, reports: [{ id, token, lines, ...progress }] }),
    (store, params) => store.report(params),
  );
}

/** Success with a transaction that adds a job and sometimes throws. */
export function transactOperation(world: World): Operation {
  const claim = world.claim();
  const job = randomJob(world, world.id());
  const fails = world.chance.oneIn(3);
  return operation(
    "transact",
    (at) => ({ ...claim, job: job(at), fails }),
    async (store, params) => {
      const added: Promise<unknown>[] = [];
      const run = (tx: unknown): string => {
        added.push(store.enqueue({ jobs: [params.job], tx }));
        if (fails) throw new Error("the caller's own");
        return "done";
      };
      const { claimer, id, token } = params;
      const encode = (value: string): Outcome & { kind: "succeed" } => ({
        kind: "succeed",
        result: JSON.stringify(value),
      });
      const answer = await store.transact({ claimer, id, token, run, encode }).catch(() => "rolled back");
      await Promise.allSettled(added);
      return answer;
    },
  );
}
