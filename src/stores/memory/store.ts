import type { Clock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import { bind } from "../../store/bind.ts";
import type { StepParams, StepResult } from "../../store/claims.ts";
import type { Health } from "../../store/opening.ts";
import type { Store } from "../../store/store.ts";
import { cancel, redrive, remove, update } from "./change.ts";
import { claim } from "./claim.ts";
import type { Data } from "./data/data.ts";
import { enqueue, enqueueAllOrNone } from "./enqueue.ts";
import { finish } from "./finish.ts";
import { history, recordHistory } from "./history.ts";
import { extend, reap, report } from "./leases.ts";
import { audit, depths, note, record, scan } from "./operations.ts";
import {
  acquirePartitions,
  checkpoint,
  partitionDue,
  partitions,
  releasePartitions,
  renewPartitions,
} from "./partitions.ts";
import { prune } from "./prune.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import type { Session } from "./session.ts";
import { transact, transactionOf } from "./transact.ts";
import { usage } from "./usage.ts";

/** Each verb is one synchronous piece of work, so it is atomic. */
const verbs = {
  update,
  cancel,
  redrive,
  remove,
  claim,
  finish,
  step: (session: Session, { finishes, claim: wanted }: StepParams): StepResult => ({
    finished: finish(session, { claimer: wanted.claimer, finishes }),
    claimed: claim(session, wanted),
  }),
  extend,
  report,
  reap,
  prune,
  get,
  list,
  count,
  trail,
  scan,
  depths,
  note,
  record,
  audit,
  recordHistory,
  history,
  configureQueue,
  queues,
  usage,
  putNode,
  removeNode,
  nodes,
  putSchedule,
  removeSchedule,
  schedules,
  dueSchedules,
  fire,
  occurrences,
  partitions,
  acquirePartitions,
  renewPartitions,
  releasePartitions,
  partitionDue,
  checkpoint,
};

export function openMemoryStore(data: Data, clock: Clock): Store {
  const subscriptions = new Set<() => void>();
  let isClosed = false;
  const assertOpen = (): void => {
    if (isClosed) throw new EscapementError("stopped", "the memory store was closed; open it again");
  };
  const run = <T>(work: (session: Session) => T): T => {
    assertOpen();
    const result = work({ data, now: clock.now(), monotonic: clock.monotonic() });
    data.notices.flush();
    return result;
  };
  return {
    capabilities: {
      transactions: true,
      listen: false,
      timePrecisionMs: 1,
      durability: "none",
      acrossSlots: true,
    },
    address: null,
    migrate: async () => assertOpen(),
    pendingMigrations: async () => [],
    health: async () => run(health),
    close: async () => {
      isClosed = true;
      for (const unsubscribe of subscriptions) unsubscribe();
    },
    subscribe: async (listener) => {
      assertOpen();
      const subscriber = { clock, listener };
      const { subscribers } = data.notices;
      const unsubscribe = (): void => void subscribers.delete(subscriber);
      subscribers.add(subscriber);
      subscriptions.add(unsubscribe);
      return async () => unsubscribe();
    },

    ...bind(verbs, async (work) => run(work)),
    enqueue: async ({ jobs, tx, allOrNone, follows }) => {
      if (tx === undefined && follows !== undefined) await follows;
      return run(({ now }) => {
        if (tx !== undefined) return transactionOf(data, tx).stage(jobs, now);
        return (allOrNone ? enqueueAllOrNone : enqueue)(data, jobs, now);
      });
    },
    transact: async (params) => {
      assertOpen();
      const result = await transact(data, params, () => ({
        data,
        now: clock.now(),
        monotonic: clock.monotonic(),
      }));
      data.notices.flush();
      return result;
    },
  };
}

function health({ data, now }: Session): Health {
  return {
    now: new Date(now),
    engine: "memory",
    schemaVersion: 1,
    details: { jobs: String(data.jobs.size), durability: "none: everything ends with this process" },
    problems: [],
  };
}
