import { EscapementError } from "../../../src/errors.ts";
import type { Finish, FinishResult, StepResult } from "../../../src/store/claims.ts";
import type { StoredJob } from "../../../src/store/jobs.ts";
import type { Store } from "../../../src/store/store.ts";
import { override } from "../../../src/testing/override.ts";

/** A fault of the product, put there on purpose, to see that the simulation finds it. */
export interface PlantedBug {
  readonly name: string;
  /** The invariants that must speak of it, so that it is not found by accident. */
  readonly breaks: readonly string[];
  /** Between the wire and the store: a store that breaks its contract. */
  readonly below?: (store: Store) => Store;
  /** Between a process and the wire: a worker that breaks its promises. */
  readonly above?: (store: Store) => Store;
  /** Keys of effects that it let through beside the store. */
  readonly effects?: () => readonly string[];
}

const everything = { limit: 10_000, order: "oldest", cursor: null } as const;

async function jobsIn(store: Store, state: StoredJob["state"]): Promise<readonly StoredJob[]> {
  return (await store.list({ ...everything, filter: { states: [state] } })).jobs;
}

function finishAsAnybody(store: Store, finishes: readonly Finish[]): Promise<FinishResult[]> {
  return Promise.all(
    finishes.map(async (finish): Promise<FinishResult> => {
      const [job] = await store.get({ ids: [finish.id] });
      const claimer = job?.claimer ?? "nobody";
      const token = job?.token ?? finish.token;
      const [result] = await store.finish({ claimer, finishes: [{ ...finish, token }] });
      return result ?? { outcome: "stale", state: null };
    }),
  );
}

const finishWithoutToken: PlantedBug = {
  name: "a finish ignores the token",
  breaks: ["a stale finish changes nothing"],
  below: (store) =>
    override(store, {
      finish: ({ finishes }) => finishAsAnybody(store, finishes),
      step: async ({ finishes, claim }) => ({
        finished: await finishAsAnybody(store, finishes),
        claimed: await store.claim(claim),
      }),
    }),
};

const reapTooEarly: PlantedBug = {
  name: "the reaper ignores the lease",
  breaks: ["only an expired lease is reaped", "no second run without a fault"],
  below: (store) =>
    override(store, {
      reap: async (params) => {
        const answer = await store.reap(params);
        const [job] = await jobsIn(store, "active");
        if (job === undefined) return answer;
        const outcome = { kind: "crash", reason: "its lease ran out" } as const;
        const finishes = [{ id: job.id, token: job.token, outcome }];
        const [ended] = await store.finish({ claimer: job.claimer ?? "nobody", finishes });
        const { id, name, queue, reason } = job;
        return {
          ...answer,
          reaped: [...answer.reaped, { id, name, queue, reason, state: ended?.state ?? job.state }],
        };
      },
    }),
};

const claimTwice: PlantedBug = {
  name: "a claim returns a job that is active elsewhere",
  breaks: ["only a waiting job is claimed", "each token starts once"],
  below: (store) =>
    override(store, {
      step: async (params) => {
        const result = await store.step(params);
        const { claimed } = result;
        if (claimed.jobs.length >= params.claim.limit) return result;
        const held = (await jobsIn(store, "active")).find(({ claimer }) => claimer !== params.claim.claimer);
        return held === undefined
          ? result
          : { ...result, claimed: { ...claimed, jobs: [...claimed.jobs, held] } };
      },
    }),
};

const newSequence: PlantedBug = {
  name: "a claim whose reply was lost is repeated under a new sequence",
  breaks: ["a lost reply costs no claim"],
  above: (store) => {
    let last = 0;
    let ahead = 0;
    return override(store, {
      step: ({ finishes, claim }) => {
        if (claim.sequence === last) ahead += 1;
        last = claim.sequence;
        return store.step({ finishes, claim: { ...claim, sequence: claim.sequence + ahead } });
      },
    });
  },
};

const silentHeartbeat: PlantedBug = {
  name: "the heartbeat stops",
  breaks: ["no lease is lost without a fault"],
  above: (store) =>
    override(store, {
      extend: async () => {
        throw new EscapementError("store-unavailable", "no heartbeat");
      },
    }),
};

const lyingHeartbeat: PlantedBug = {
  name: "the heartbeat believes that it renewed",
  breaks: ["a holder that cannot renew stops before expiry"],
  above: (store) =>
    override(store, {
      extend: async ({ claims }) => claims.map(() => ({ outcome: "extended", cancelRequested: false })),
    }),
};

const droppedOutcome: PlantedBug = {
  name: "an outcome is dropped when its finish fails",
  breaks: ["an outcome is sent until it is answered"],
  above: (store) => {
    let failed = new Set<string>();
    const keep = (finishes: readonly Finish[]): Finish[] => finishes.filter(({ id }) => !failed.has(id));
    const orDrop = async <T>(finishes: readonly Finish[], call: Promise<T>): Promise<T> => {
      try {
        return await call;
      } catch (error) {
        failed = new Set(finishes.map(({ id }) => id));
        throw error;
      }
    };
    const pretend = (finishes: readonly Finish[], results: readonly FinishResult[]): FinishResult[] => {
      const left = [...results];
      return finishes.map(({ id }) => {
        const result = failed.has(id) ? undefined : left.shift();
        return result ?? { outcome: "written", state: "succeeded" };
      });
    };
    return override(store, {
      finish: async ({ claimer, finishes }) =>
        pretend(finishes, await orDrop(finishes, store.finish({ claimer, finishes: keep(finishes) }))),
      step: async ({ finishes, claim }) => {
        const { finished, claimed } = await orDrop(finishes, store.step({ finishes: keep(finishes), claim }));
        return { finished: pretend(finishes, finished), claimed };
      },
    });
  },
};

const retriedOnce: PlantedBug = {
  name: "at-most-once is tried again after a crash",
  breaks: ["at-most-once is dispatched once"],
  below: (store) =>
    override(store, {
      enqueue: (params) =>
        store.enqueue({
          ...params,
          jobs: params.jobs.map((job) => ({ ...job, delivery: repeatable(job.delivery) })),
        }),
      step: async (params) => {
        const { finished, claimed } = await store.step(params);
        const jobs = claimed.jobs.map((job) =>
          job.name === "once" ? ({ ...job, delivery: "at-most-once" } as const) : job,
        );
        return { finished, claimed: { ...claimed, jobs } };
      },
    }),
};

function repeatable(delivery: StoredJob["delivery"]): StoredJob["delivery"] {
  return delivery === "at-most-once" ? "at-least-once" : delivery;
}

/** A worker whose claim is gone writes all the same, beside the job. */
function effectWithoutToken(): PlantedBug {
  const written: string[] = [];
  return {
    name: "an effect commits without its claim",
    breaks: ["an effect commits only under its claim", "one committed effect for a success, none otherwise"],
    effects: () => written.splice(0),
    below: (store) =>
      override(store, {
        transact: async (params) => {
          const result = await store.transact(params);
          if (result.outcome === "committed") return result;
          const value = await params.run({ set: (key: string) => written.push(key) }, () => []);
          return { outcome: "committed", value };
        },
      }),
  };
}

const early: PlantedBug = {
  name: "a claim takes what is not due",
  breaks: ["a due time moves only by a client or an end"],
  below: (store) =>
    override(store, {
      step: async (params) => {
        const { now } = await store.health();
        const later = (await jobsIn(store, "waiting")).find(({ runAt }) => runAt > now);
        if (later !== undefined) await store.update({ id: later.id, runAt: now });
        return store.step(params);
      },
    }),
};

const noKeyLimit: PlantedBug = {
  name: "a claim ignores the limits of keys",
  breaks: ["a key's limit holds", "a key's rate holds"],
  below: (store) =>
    override(store, {
      step: ({ finishes, claim }) => {
        const names = claim.names.map((name) => ({ ...name, concurrency: null, rate: null }));
        return store.step({ finishes, claim: { ...claim, names } });
      },
    }),
};

const neverAlone: PlantedBug = {
  name: "a fragile job is claimed among others",
  breaks: ["a fragile job runs alone"],
  above: (store) =>
    override(store, {
      step: ({ finishes, claim }) => store.step({ finishes, claim: { ...claim, alone: true } }),
    }),
};

const forgottenEnqueue: PlantedBug = {
  name: "an enqueue is acknowledged and not written",
  breaks: ["an acknowledged job exists"],
  below: (store) =>
    override(store, {
      enqueue: async (params) =>
        params.jobs.some(({ id }) => id.endsWith("7"))
          ? params.jobs.map(({ id }) => ({ id, outcome: "added" }))
          : store.enqueue(params),
    }),
};

const forgottenCancel: PlantedBug = {
  name: "a cancel is acknowledged and not written",
  breaks: ["an acknowledged cancel holds"],
  below: (store) =>
    override(store, {
      cancel: async ({ select }) => {
        const ids = "ids" in select ? select.ids : [];
        return { results: ids.map((id) => ({ id, outcome: "cancelled" })), cursor: null };
      },
    }),
};

const shortLease: PlantedBug = {
  name: "a lease is shorter than was asked for",
  breaks: ["only an expired lease is reaped"],
  below: (store) =>
    override(store, {
      extend: (params) => store.extend({ ...params, leaseMs: params.leaseMs / 4 }),
    }),
};

const forgottenOccurrence: PlantedBug = {
  name: "a schedule goes on though its occurrence was not written",
  breaks: ["one row accounts for each occurrence"],
  below: (store) =>
    override(store, {
      fire: ({ node, fires }) =>
        store.fire({
          node,
          fires: fires.map((fire) =>
            (fire.nextAt?.getTime() ?? 0) % 3_000 === 0 ? { ...fire, occurrences: [] } : fire,
          ),
        }),
    }),
};

const fireWithoutCheck: PlantedBug = {
  name: "a plan is written whatever it rests on",
  breaks: ["a plan counts only under the version and the time it rests on"],
  below: (store) =>
    override(store, {
      fire: async ({ node, fires }) => {
        const records = await store.schedules({ keys: fires.map(({ key }) => key) });
        const forced = fires.map((fire) => {
          const record = records.find(({ key }) => key === fire.key);
          return record === undefined ? fire : { ...fire, version: record.version, nextAt: record.nextAt };
        });
        return store.fire({ node, fires: forced });
      },
    }),
};

const planAhead: PlantedBug = {
  name: "a planner believes its own clock",
  breaks: ["no occurrence is planned early"],
  above: (store) =>
    override(store, {
      dueSchedules: async (params) => {
        const { now, nextAt } = await store.dueSchedules(params);
        const ahead = new Date(now.getTime() + 60_000);
        const all = await store.schedules({ keys: null });
        const due = all.filter((one) => !one.paused && one.nextAt !== null && one.nextAt <= ahead);
        return { now: ahead, due: due.slice(0, params.limit), nextAt };
      },
    }),
};

const lazyPlanner: PlantedBug = {
  name: "a planner finds nothing due",
  breaks: ["what is due on a schedule is planned"],
  above: (store) =>
    override(store, {
      dueSchedules: async (params) => ({ ...(await store.dueSchedules(params)), due: [] }),
    }),
};

const hastyReaper: PlantedBug = {
  name: "a reaper does not wait after an outage",
  breaks: ["an outage takes nothing from a living process"],
  above: (store) => override(store, { reap: ({ limit }) => store.reap({ limit }) }),
};

/** Claims lie in a drawer for half a lease, and the worker takes them for new. */
const lateStart: PlantedBug = {
  name: "a claim is started however late its answer is",
  breaks: ["a handler starts with time for a heartbeat"],
  above: (store) => {
    let drawer: StepResult["claimed"] | null = null;
    return override(store, {
      step: async (params) => {
        const answer = await store.step(params);
        const { claimed } = answer;
        const ageMs = claimed.now.getTime() - (drawer?.now.getTime() ?? 0);
        if (drawer !== null && ageMs >= params.claim.leaseMs * 0.5 && claimed.jobs.length === 0) {
          const { jobs } = drawer;
          drawer = null;
          return { ...answer, claimed: { ...claimed, jobs } };
        }
        if (drawer !== null || claimed.jobs.length === 0) return answer;
        drawer = claimed;
        return { ...answer, claimed: { ...claimed, jobs: [] } };
      },
    });
  },
};

/** Whatever comes next is claimed ahead, as if it were to start at once. */
const unmarkedAhead: PlantedBug = {
  name: "a store claims ahead without marking it",
  breaks: [
    "only what may wait is claimed ahead",
    "a crash is counted when, and only when, a started job's lease ran out",
  ],
  below: (store) =>
    override(store, {
      step: ({ finishes, claim }) =>
        store.step({ finishes, claim: { ...claim, limit: claim.limit + (claim.ahead ?? 0), ahead: 0 } }),
    }),
};

/** The store fails under a handler's transaction, and the handler is blamed. */
const rollbackAsAttempt: PlantedBug = {
  name: "a rollback is counted as an attempt",
  breaks: ["a rollback costs no attempt"],
  above: (store) => {
    const blamed = (finishes: readonly Finish[]): Finish[] =>
      finishes.map((finish) =>
        finish.outcome.kind === "rollback"
          ? { ...finish, outcome: { ...finish.outcome, kind: "retry" } }
          : finish,
      );
    return override(store, {
      finish: ({ claimer, finishes }) => store.finish({ claimer, finishes: blamed(finishes) }),
      step: ({ finishes, claim }) => store.step({ finishes: blamed(finishes), claim }),
    });
  },
};

/** The answer to one trip is taken for the answer to the other that was under way with it. */
const mixedTrips: PlantedBug = {
  name: "outcomes that travel beside a claim count as written when the claim is answered",
  breaks: ["an outcome is sent until it is answered"],
  above: (store) => {
    let claims = 0;
    return override(store, {
      step: async (params) => {
        claims += 1;
        return store.step(params).finally(() => {
          claims -= 1;
        });
      },
      finish: async (params) => {
        if (claims === 0) return store.finish(params);
        return params.finishes.map(() => ({ outcome: "written", state: "succeeded" }));
      },
    });
  },
};

export const plantedBugs: readonly PlantedBug[] = [
  finishWithoutToken,
  reapTooEarly,
  claimTwice,
  newSequence,
  silentHeartbeat,
  lyingHeartbeat,
  droppedOutcome,
  retriedOnce,
  effectWithoutToken(),
  early,
  noKeyLimit,
  neverAlone,
  forgottenEnqueue,
  forgottenCancel,
  shortLease,
  forgottenOccurrence,
  fireWithoutCheck,
  planAhead,
  lazyPlanner,
  hastyReaper,
  lateStart,
  unmarkedAhead,
  rollbackAsAttempt,
  mixedTrips,
];
