/** Faults of the relay, put there on purpose: they show where jobs are published. */
import { DatabaseSync } from "node:sqlite";
import type { Finish } from "../../../src/store/claims.ts";
import type { Store } from "../../../src/store/store.ts";
import { override } from "../../../src/testing/override.ts";
import type { Bug } from "./bugs.ts";

/** Who holds a partition by the store's own rows, whatever anybody believes. */
function holderOf(
  store: Store,
  partition: number,
): { readonly owner: string; readonly epoch: number } | null {
  const { path } = (store.address ?? { options: {} }).options as { path: string };
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const row = database
      .prepare("select owner, epoch from escapement_partitions where partition = ?")
      .get(partition);
    const { owner, epoch } = row ?? {};
    return typeof owner === "string" && typeof epoch === "number" ? { owner, epoch } : null;
  } finally {
    database.close();
  }
}

/** What a relay tells the store of its jobs, told otherwise. */
function settling(store: Store, change: (outcome: Finish["outcome"]) => Finish["outcome"]): Store {
  return override(store, {
    checkpoint: (params) =>
      store.checkpoint({
        ...params,
        settled: params.settled.map((one) => ({ ...one, outcome: change(one.outcome) })),
      }),
  });
}

export const relayBugs: readonly Bug[] = [
  {
    name: "checkpoint before publish",
    breaks: ["lost"],
    faults: ["kill", "publish"],
    routed: true,
    store: (store) =>
      override(store, {
        async checkpoint(params) {
          const answer = await store.checkpoint(params);
          const outcome = { kind: "succeed", result: null } as const;
          const settled = answer.named.map(({ id, token }) => ({ id, token, outcome }));
          if (settled.length > 0) await store.checkpoint({ ...params, settled, name: [] });
          return answer;
        },
      }),
  },
  {
    name: "high-water mark used as a filter",
    breaks: ["stuck", "missed"],
    faults: [],
    routed: true,
    store: (store) => {
      const marks = new Map<number, number>();
      return override(store, {
        checkpoint(params) {
          if (params.mark !== null) marks.set(params.partition, params.mark.getTime());
          return store.checkpoint(params);
        },
        async partitionDue(params) {
          const due = await store.partitionDue(params);
          const mark = marks.get(params.partition) ?? 0;
          return { ...due, jobs: due.jobs.filter(({ runAt }) => runAt.getTime() >= mark) };
        },
      });
    },
  },
  {
    name: "publish without epoch",
    breaks: ["epoch"],
    faults: ["pause"],
    routed: true,
    // A node is stopped for three leases, and must find something to do at once when it goes on: soon after it hears that it lost.
    durationMs: 12_000,
    perSecond: 300,
    store: (store) =>
      override(store, {
        renewPartitions: async (params) => {
          await store.renewPartitions(params);
          return params.held.map(() => "renewed");
        },
        async checkpoint(params) {
          const answer = await store.checkpoint(params);
          if (answer.outcome === "written") return answer;
          const holder = holderOf(store, params.partition);
          return holder === null ? answer : store.checkpoint({ ...params, ...holder });
        },
      }),
  },
  {
    name: "rollback counted as attempt",
    breaks: ["rollback"],
    faults: ["publish"],
    routed: true,
    store: (store) =>
      settling(store, (outcome) => (outcome.kind === "rollback" ? { ...outcome, kind: "retry" } : outcome)),
  },
  {
    name: "timeout treated as failure under at-most-once",
    breaks: ["duplicated"],
    faults: ["publish"],
    routed: true,
    store: (store) => settling(store, (outcome) => (outcome.kind === "lose" ? { kind: "release" } : outcome)),
  },
];
