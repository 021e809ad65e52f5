import type { CheckpointParams } from "../../../src/store/partitions.ts";
import type { Store } from "../../../src/store/store.ts";
import { override } from "../../../src/testing/override.ts";

/** A fault of the relay or its store, put there on purpose, to see that the simulation finds it. */
export interface RelayBug {
  readonly name: string;
  /** The invariants that must speak of it. */
  readonly breaks: readonly string[];
  /** Between the wire and the store. */
  readonly below?: (store: Store) => Store;
  /** Between a process and the wire. */
  readonly above?: (store: Store) => Store;
}

const succeed = { kind: "succeed", result: null } as const;

const settledBeforePublish: RelayBug = {
  name: "the checkpoint counts a task as fired before it is published",
  breaks: ["a task counts as fired only when the broker has it"],
  below: (store) =>
    override(store, {
      checkpoint: async (params) => {
        const answer = await store.checkpoint(params);
        const settled = answer.named.map(({ id, token }) => ({ id, token, outcome: succeed }));
        await store.checkpoint({ ...params, settled, name: [] });
        return answer;
      },
    }),
};

const markAsFilter: RelayBug = {
  name: "the high-water mark is used as a filter",
  breaks: ["every job ends"],
  above: (store) => {
    const marks = new Map<number, number>();
    return override(store, {
      checkpoint: (params) => {
        if (params.mark !== null) marks.set(params.partition, params.mark.getTime());
        return store.checkpoint(params);
      },
      partitionDue: async (params) => {
        const due = await store.partitionDue(params);
        const mark = marks.get(params.partition) ?? 0;
        return { ...due, jobs: due.jobs.filter(({ runAt }) => runAt.getTime() >= mark) };
      },
    });
  },
};

const withoutEpoch: RelayBug = {
  name: "a checkpoint is written without looking at its epoch",
  breaks: ["a stale epoch never writes"],
  below: (store) =>
    override(store, {
      checkpoint: async (params) => {
        const answer = await store.checkpoint(params);
        if (answer.outcome === "written") return answer;
        const finished = params.settled.map(() => ({ outcome: "written", state: "succeeded" }) as const);
        return { outcome: "written", finished, named: [] };
      },
    }),
};

const rollbackAsAttempt: RelayBug = {
  name: "a rollback is counted as a try",
  breaks: ["a rollback costs no attempt"],
  below: (store) =>
    override(store, {
      checkpoint: (params) =>
        store.checkpoint({
          ...params,
          settled: params.settled.map((one) =>
            one.outcome.kind === "rollback" ? { ...one, outcome: { ...one.outcome, kind: "retry" } } : one,
          ),
        }),
    }),
};

const onceAgain: RelayBug = {
  name: "at-most-once is published again when nobody knows",
  breaks: ["at-most-once is published once"],
  above: (store) =>
    override(store, {
      checkpoint: (params: CheckpointParams) =>
        store.checkpoint({
          ...params,
          settled: params.settled.map((one) =>
            one.outcome.kind === "lose" ? { ...one, outcome: { kind: "release" } } : one,
          ),
        }),
    }),
};

const onceTakenOver: RelayBug = {
  name: "what a dead owner had named is published again, whatever its guarantee",
  breaks: ["at-most-once is published once"],
  above: (store) =>
    override(store, {
      acquirePartitions: async (params) =>
        (await store.acquirePartitions(params)).map((grant) => ({
          ...grant,
          named: grant.named.map((job) => ({ ...job, delivery: "at-least-once" })),
        })),
    }),
};

const lyingRenewal: RelayBug = {
  name: "a holder believes that it renewed",
  breaks: [
    "a holder that cannot renew stops before expiry",
    "only what was named is published, and only by whom it was named to",
  ],
  above: (store) =>
    override(store, {
      renewPartitions: async ({ held }) => held.map(() => "renewed"),
    }),
};

const cutTooEarly: RelayBug = {
  name: "the namespace is cut anew while partitions are held",
  breaks: ["a slot has one holder"],
  below: (store) =>
    override(store, {
      acquirePartitions: async (params) => {
        const { wanted, partitions } = await store.partitions();
        for (const { owner, ...ref } of params.partitions > wanted ? partitions : [])
          if (owner !== null) await store.releasePartitions({ owner, held: [ref] });
        return store.acquirePartitions(params);
      },
    }),
};

const epochsAnew: RelayBug = {
  name: "epochs begin anew when there are more partitions",
  breaks: ["epochs rise"],
  below: (store) =>
    override(store, {
      acquirePartitions: async (params) => {
        const { partitions } = await store.partitions();
        const grants = await store.acquirePartitions(params);
        const isCut =
          partitions.length > 0 && (await store.partitions()).partitions.length > partitions.length;
        return isCut ? grants.map((grant) => ({ ...grant, epoch: 1 })) : grants;
      },
    }),
};

const early: RelayBug = {
  name: "a checkpoint names what is not due",
  breaks: ["never early"],
  below: (store) =>
    override(store, {
      checkpoint: async (params) => {
        const answer = await store.checkpoint(params);
        return {
          ...answer,
          named: answer.named.map((job) => ({ ...job, runAt: new Date(job.runAt.getTime() + 60_000) })),
        };
      },
    }),
};

const hasty: RelayBug = {
  name: "what was named ahead of its time, by itself or by a dead owner, is published at once",
  breaks: ["never early"],
  above: (store) => {
    const past = <T extends { readonly runAt: Date }>(jobs: readonly T[]): T[] =>
      jobs.map((job) => ({ ...job, runAt: new Date(0) }));
    return override(store, {
      checkpoint: async (params) => {
        const answer = await store.checkpoint(params);
        return { ...answer, named: past(answer.named) };
      },
      acquirePartitions: async (params) => {
        const grants = await store.acquirePartitions(params);
        return grants.map((grant) => ({ ...grant, named: past(grant.named) }));
      },
    });
  },
};

const forgottenNames: RelayBug = {
  name: "a naming whose reply was lost is not asked for again",
  breaks: ["every job ends"],
  above: (store) => {
    const lost = new Set<string>();
    return override(store, {
      checkpoint: async (params) => {
        const name = params.name.filter(({ id }) => !lost.has(id));
        try {
          return await store.checkpoint({ ...params, name });
        } catch (error) {
          for (const { id } of params.name) lost.add(id);
          throw error;
        }
      },
    });
  },
};

export const relayBugs: readonly RelayBug[] = [
  settledBeforePublish,
  markAsFilter,
  withoutEpoch,
  rollbackAsAttempt,
  onceAgain,
  onceTakenOver,
  lyingRenewal,
  cutTooEarly,
  epochsAnew,
  early,
  hasty,
  forgottenNames,
];
