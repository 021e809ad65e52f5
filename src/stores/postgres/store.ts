import { bind } from "../../store/bind.ts";
import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import type { Store } from "../../store/store.ts";
import { cancel, prune, redrive, remove, update } from "./change.ts";
import { claim, finish, step } from "./claim.ts";
import { depths } from "./depths.ts";
import { Handle, type HandleParts } from "./handle.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { extend, reap, report } from "./leases.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
import {
  acquirePartitions,
  checkpoint,
  partitionDue,
  partitions,
  releasePartitions,
  renewPartitions,
} from "./partitions.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import type { Session } from "./session.ts";
import { usage } from "./usage.ts";

const verbs = {
  update,
  cancel,
  redrive,
  remove,
  finish,
  extend,
  report,
  reap,
  prune: async (session: Session, params: PruneParams): Promise<PruneResult> => {
    const moreEntries = await pruneAudit(session, params);
    const moreHistory = await pruneHistory(session, params);
    const { pruned, more } = await prune(session, params);
    return { pruned, more: more || moreEntries || moreHistory };
  },
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

export async function openPostgresStore(parts: HandleParts): Promise<Store> {
  const handle = await Handle.open(parts);
  return {
    capabilities: parts.capabilities,
    address: parts.address,
    migrate: () => handle.migrate(),
    pendingMigrations: () => handle.pendingMigrations(),
    health: () => handle.health(),
    close: () => handle.close(),
    subscribe: (listener) => handle.subscribe(listener),

    ...bind(verbs, async (work) => work(handle.session())),
    enqueue: (params) => handle.enqueue(params),
    transact: (params) => handle.transact(params),
    claim: async (params) => {
      const claimed = await claim(handle.session(), params);
      handle.vacuum.claimed(claimed.jobs.length);
      return claimed;
    },
    step: async (params) => {
      const result = await step(handle.session(), params);
      handle.vacuum.claimed(result.claimed.jobs.length);
      return result;
    },
  };
}
