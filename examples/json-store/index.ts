// A store in one JSON file: what a sixth store looks like. It passes the core of the conformance suite (json-store.test.ts);
// limits, schedules, the relay and the questions of screens are left out.

import { bind, type Store, type StoreFactory } from "../../src/store/index.ts";
import { claim, extend, finish, reap, report, step } from "./claims.ts";
import { change } from "./document.ts";
import { cancel, enqueue, redrive, update } from "./jobs.ts";
import { get, list, trail } from "./questions.ts";
import type { Session } from "./session.ts";

// #region store
const verbs = {
  enqueue,
  update,
  cancel,
  redrive,
  claim,
  finish,
  step,
  extend,
  report,
  reap,
  get,
  list,
  trail,
};

export function jsonFile(folder: string): StoreFactory {
  return {
    async open({ namespace, clock }): Promise<Store> {
      const path = `${folder}/${encodeURIComponent(namespace)}.json`;
      let isOpen = true;
      const run = <T>(work: (session: Session) => T): Promise<T> => {
        if (!isOpen) throw new Error("the JSON store was closed; open it again");
        return change(path, (document) => work({ document, now: clock.now(), monotonic: clock.monotonic() }));
      };
      return {
        ...missing,
        ...bind(verbs, run),
        capabilities: {
          transactions: false,
          listen: false,
          timePrecisionMs: 1,
          durability: "full",
          acrossSlots: true,
        },
        address: null,
        migrate: async () => {},
        pendingMigrations: async () => [],
        health: () =>
          run(({ now }) => ({
            now: new Date(now),
            engine: "a JSON file",
            schemaVersion: 1,
            details: { path },
            problems: [],
          })),
        // Without notices, everyone polls.
        subscribe: async () => async () => {},
        close: async () => {
          isOpen = false;
        },
      };
    },
  };
}

// #endregion

/** A toy: the verbs of the contract that it does not have. */
const missing = refuse([
  "transact",
  "remove",
  "prune",
  "count",
  "scan",
  "depths",
  "note",
  "record",
  "audit",
  "recordHistory",
  "history",
  "configureQueue",
  "queues",
  "usage",
  "putNode",
  "removeNode",
  "nodes",
  "putSchedule",
  "removeSchedule",
  "schedules",
  "dueSchedules",
  "fire",
  "occurrences",
  "partitions",
  "acquirePartitions",
  "renewPartitions",
  "releasePartitions",
  "partitionDue",
  "checkpoint",
]);

function refuse<Name extends keyof Store>(names: readonly Name[]): Pick<Store, Name> {
  const refusals = names.map((name) => [
    name,
    async () => {
      throw new Error(`the JSON store has no ${name}`);
    },
  ]);
  return Object.fromEntries(refusals) as Pick<Store, Name>;
}
