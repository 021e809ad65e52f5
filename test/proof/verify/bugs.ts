/** Faults of the product, put there on purpose, to see that the checker finds them: each a wrapper around a correct store. */
import { DatabaseSync } from "node:sqlite";
import { EscapementError } from "../../../src/errors.ts";
import type { Tampering } from "../../../src/proof/node-plan.ts";
import type { ViolationKind } from "../../../src/proof/violation.ts";
import type { Finish, FinishResult, TransactParams } from "../../../src/store/claims.ts";
import type { StoredJob } from "../../../src/store/jobs.ts";
import type { Store } from "../../../src/store/store.ts";
import { override } from "../../../src/testing/override.ts";
import type { FaultKind } from "../../../src/verify-report.ts";
import { relayBugs } from "./relay-bugs.ts";

export interface Bug {
  readonly name: string;
  /** One of these must be found, so that it is not found by accident. */
  readonly breaks: readonly ViolationKind[];
  /** What must happen for it to show. */
  readonly faults: readonly FaultKind[];
  /** The longest job, where it must be longer than a lease. */
  readonly slowMs?: number;
  /** How long it must run, where that is longer than most. */
  readonly durationMs?: number;
  /** How many jobs a second. @default 75 */
  readonly perSecond?: number;
  /** Whether jobs must be published for it to show. @default false: handlers run in the nodes */
  readonly routed?: boolean;
  readonly store: (store: Store) => Store;
}

const everything = { limit: 1_000, order: "oldest", cursor: null } as const;

async function jobsIn(store: Store, state: StoredJob["state"]): Promise<readonly StoredJob[]> {
  return (await store.list({ ...everything, filter: { states: [state] } })).jobs;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A worker's two ways to finish, through one function. */
function finishing(
  store: Store,
  finish: (claimer: string, finishes: readonly Finish[]) => Promise<FinishResult[]>,
) {
  return override(store, {
    finish: ({ claimer, finishes }) => finish(claimer, finishes),
    step: async ({ finishes, claim }) => ({
      finished: finishes.length === 0 ? [] : await finish(claim.claimer, finishes),
      claimed: await store.claim(claim),
    }),
  });
}

/** More jobs with each claim than the store gave. */
function claimingAlso(store: Store, more: (claimer: string) => Promise<readonly StoredJob[]>): Store {
  return override(store, {
    step: async (params) => {
      const result = await store.step(params);
      const jobs = [...result.claimed.jobs, ...(await more(params.claim.claimer))];
      return { ...result, claimed: { ...result.claimed, jobs } };
    },
  });
}

async function crash(store: Store, jobs: readonly StoredJob[]): Promise<void> {
  const outcome = { kind: "crash", reason: "its lease ran out" } as const;
  for (const { id, token, claimer } of jobs)
    await store.finish({ claimer: claimer ?? "nobody", finishes: [{ id, token, outcome }] });
}

/** Runs an effect beside the store's own transaction. */
async function effectBeside<T>(store: Store, { run }: TransactParams<T>): Promise<T> {
  const { path } = (store.address ?? { options: {} }).options as { path: string };
  const database = new DatabaseSync(path, { timeout: 5_000 });
  try {
    return await run(database, () => []);
  } finally {
    database.close();
  }
}

export const bugs: readonly Bug[] = [
  {
    name: "no unique key on occurrences",
    breaks: ["duplicated", "phantom"],
    faults: [],
    store: (store) =>
      override(store, {
        async fire(params) {
          // Everybody has read what is due before anybody writes.
          await wait(30);
          const results = await store.fire(params);
          const jobs = params.fires
            .filter((_, index) => results[index]?.outcome === "stale")
            .flatMap(({ occurrences }) => occurrences.flatMap(({ job }) => job ?? []));
          if (jobs.length > 0)
            await store.enqueue({ jobs: jobs.map((job) => ({ ...job, id: `${job.id}/${process.pid}` })) });
          return results;
        },
      }),
  },
  {
    name: "acknowledge before run",
    breaks: ["lost"],
    faults: ["kill"],
    store: (store) =>
      override(store, {
        async step(params) {
          const result = await store.step(params);
          const finishes = result.claimed.jobs.map(({ id, token }) => {
            const outcome = { kind: "succeed", result: JSON.stringify({ token }) } as const;
            return { id, token, outcome };
          });
          if (finishes.length > 0) await store.finish({ claimer: params.claim.claimer, finishes });
          return result;
        },
      }),
  },
  {
    name: "finish without token",
    breaks: ["stale-accepted"],
    faults: ["pause"],
    store: (store) =>
      finishing(store, (_, finishes) =>
        Promise.all(
          finishes.map(async (finish): Promise<FinishResult> => {
            const [job] = await store.get({ ids: [finish.id] });
            if (job?.state === "succeeded") return { outcome: "written", state: "succeeded" };
            const claimer = job?.claimer ?? "nobody";
            const token = job?.token ?? finish.token;
            const [result] = await store.finish({ claimer, finishes: [{ ...finish, token }] });
            return result ?? { outcome: "stale", state: null };
          }),
        ),
      ),
  },
  {
    name: "lease on the client's clock",
    breaks: ["duplicated", "lost"],
    faults: ["clock"],
    store: (store) => {
      const offsetMs = process.pid % 2 === 0 ? 5 * 60_000 : -5 * 60_000;
      return override(store, {
        async reap(params) {
          const nowMs = Date.now() + offsetMs;
          const active = await jobsIn(store, "active");
          await crash(
            store,
            active.filter(({ claimedAt }) => (claimedAt?.getTime() ?? nowMs) + 10_000 < nowMs),
          );
          return store.reap(params);
        },
      });
    },
  },
  {
    name: "check, then claim",
    breaks: ["duplicated", "token"],
    faults: [],
    store: (store) =>
      claimingAlso(store, async (claimer) => {
        const active = await jobsIn(store, "active");
        return active.filter((job) => job.claimer !== claimer).slice(0, 1);
      }),
  },
  {
    name: "next time advanced though the insert failed",
    breaks: ["missed"],
    faults: [],
    store: (store) =>
      override(store, {
        fire: (params) =>
          store.fire({
            ...params,
            fires: params.fires.map((fire) =>
              fire.nextAt !== null && fire.nextAt.getTime() % 2_000 === 0
                ? { ...fire, occurrences: [] }
                : fire,
            ),
          }),
      }),
  },
  {
    name: "heartbeat stops while handlers still run",
    breaks: ["duplicated", "lost"],
    faults: [],
    slowMs: 3_000,
    store: (store) =>
      override(store, {
        address: null,
        extend: async ({ claims }) => claims.map(() => ({ outcome: "extended", cancelRequested: false })),
      }),
  },
  {
    name: "retry in two steps",
    breaks: ["lost"],
    faults: ["kill"],
    store: (store) =>
      finishing(store, async (claimer, finishes) => {
        const failed = finishes.filter(({ outcome }) => outcome.kind === "retry").map(({ id }) => id);
        const first = finishes.map((finish) =>
          finish.outcome.kind === "retry"
            ? { ...finish, outcome: { kind: "die", reason: "for now", error: finish.outcome.error } as const }
            : finish,
        );
        const results = await store.finish({ claimer, finishes: first });
        if (failed.length > 0)
          void wait(400).then(() => store.redrive({ select: { ids: failed }, reason: null }));
        return results;
      }),
  },
  {
    name: "a cancelled job is completed",
    breaks: ["cancelled-ran"],
    faults: [],
    store: (store) => {
      const taken = new Set<string>();
      return claimingAlso(store, async () => {
        const cancelled = await jobsIn(store, "cancelled");
        const fresh = cancelled.filter(({ id, attempt }) => attempt === 0 && !taken.has(id)).slice(0, 1);
        for (const { id } of fresh) taken.add(id);
        return fresh.map((job) => ({ ...job, token: job.token + 1, attempt: 1, cancelRequested: false }));
      });
    },
  },
  {
    name: "reaper ignores token and lease",
    breaks: ["duplicated", "lost"],
    faults: [],
    store: (store) =>
      override(store, {
        async reap(params) {
          await crash(store, (await jobsIn(store, "active")).slice(0, 2));
          return store.reap(params);
        },
      }),
  },
  {
    name: "ledger write failing open",
    breaks: ["missed"],
    faults: [],
    store: (store) =>
      override(store, {
        async fire(params) {
          const results = await store.fire({
            ...params,
            fires: params.fires.map((fire) => ({ ...fire, occurrences: [] })),
          });
          const jobs = params.fires
            .filter((_, index) => results[index]?.outcome === "fired")
            .flatMap(({ occurrences }) => occurrences.flatMap(({ job }) => job ?? []));
          if (jobs.length > 0) await store.enqueue({ jobs });
          return results;
        },
      }),
  },
  {
    name: "inbox marks done before the effect",
    breaks: ["lost"],
    faults: ["kill"],
    store: (store) =>
      override(store, {
        async transact(params) {
          const { claimer, id, token } = params;
          const outcome = { kind: "succeed", result: JSON.stringify({ token }) } as const;
          const [marked] = await store.finish({ claimer, finishes: [{ id, token, outcome }] });
          if (marked?.outcome !== "written") return { outcome: "stale" };
          await wait(300);
          return { outcome: "committed", value: await effectBeside(store, params) };
        },
      }),
  },
  {
    name: "an effect commits without its claim",
    breaks: ["duplicated", "stale-accepted"],
    faults: ["pause"],
    // A node must be stopped in the middle of a job with an effect.
    slowMs: 1_200,
    durationMs: 9_000,
    store: (store) =>
      override(store, {
        async transact(params) {
          const result = await store.transact(params);
          if (result.outcome === "committed") return result;
          return { outcome: "committed", value: await effectBeside(store, params) };
        },
      }),
  },
  {
    name: "a claim takes what is not due",
    breaks: ["early"],
    faults: [],
    store: (store) =>
      override(store, {
        async step(params) {
          const now = new Date();
          const later = (await jobsIn(store, "waiting")).find(
            ({ runAt }) => runAt.getTime() > now.getTime() + 300,
          );
          if (later !== undefined) await store.update({ id: later.id, runAt: now });
          return store.step(params);
        },
      }),
  },
  {
    name: "an outcome is taken and not written",
    breaks: ["stale-accepted", "duplicated", "lost"],
    faults: [],
    store: (store) =>
      finishing(store, async (claimer, finishes) => {
        const kept = finishes.filter(({ id }) => !id.endsWith("7"));
        const results = kept.length === 0 ? [] : await store.finish({ claimer, finishes: kept });
        const left = [...results];
        return finishes.map((finish) => {
          const result = finish.id.endsWith("7") ? undefined : left.shift();
          return result ?? { outcome: "written", state: "succeeded" };
        });
      }),
  },
  ...relayBugs,
];

export function tamper(name: string): Tampering {
  const bug = bugs.find((one) => one.name === name);
  if (bug === undefined) throw new EscapementError("not-found", `there is no bug ${JSON.stringify(name)}`);
  return { store: bug.store };
}
