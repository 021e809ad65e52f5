import { allOrNone, assertNoneRefused } from "../../store/all-or-none.ts";
import { bind } from "../../store/bind.ts";
import type { StepParams, StepResult } from "../../store/claims.ts";
import type { EnqueueParams, EnqueueResult } from "../../store/jobs.ts";
import type { StoreAddress, StoreContext } from "../../store/opening.ts";
import type { PruneParams, PruneResult, ReapParams, ReapResult } from "../../store/reaping.ts";
import type { Store } from "../../store/store.ts";
import { isCounted } from "../kept-counts.ts";
import { update } from "./change.ts";
import { claim } from "./claim.ts";
import type { Engine } from "./connection/engine.ts";
import { depths } from "./depths.ts";
import { enqueue } from "./enqueue.ts";
import { finish } from "./finish.ts";
import { Handle } from "./handle.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { countOn, isBehind } from "./jobs/counts.ts";
import { remove } from "./jobs/remove.ts";
import { cancel, redrive } from "./jobs/select.ts";
import { extend, reap, report } from "./leases.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
import { partitionDue } from "./partition/due.ts";
import { partitions } from "./partition/table.ts";
import { acquirePartitions, checkpoint, releasePartitions, renewPartitions } from "./partitions.ts";
import { prune } from "./prune.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import type { Session } from "./session.ts";
import { transact, unwrapCaller } from "./transact.ts";
import { usage } from "./usage.ts";

/** Verbs that change nothing. */
const questions = {
  get,
  list,
  trail,
  scan,
  depths,
  audit,
  history,
  queues,
  usage,
  nodes,
  schedules,
  dueSchedules,
  occurrences,
  partitions,
  partitionDue,
};

const changes = {
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
  reap: (session: Session, params: ReapParams): ReapResult => {
    countOn(session);
    return reap(session, params);
  },
  prune: (session: Session, params: PruneParams): PruneResult => {
    const moreEntries = pruneAudit(session, params);
    const moreHistory = pruneHistory(session, params);
    const { pruned, more } = prune(session, params);
    return { pruned, more: more || moreEntries || moreHistory };
  },
  note,
  record,
  recordHistory,
  configureQueue,
  putNode,
  removeNode,
  putSchedule,
  removeSchedule,
  fire,
  acquirePartitions,
  renewPartitions,
  releasePartitions,
  checkpoint,
};

export async function openSqliteStore(
  engine: Engine,
  context: StoreContext,
  address: StoreAddress | null,
): Promise<Store> {
  const handle = await Handle.open(engine, context);
  return {
    capabilities: engine.capabilities,
    address,
    migrate: () => handle.migrate(),
    pendingMigrations: () => handle.pendingMigrations(),
    health: () => handle.health(),
    close: () => handle.close(),
    subscribe: (listener) => handle.subscribe(listener),

    ...bind(questions, (work) => handle.read(work)),
    ...bind(changes, (work) => handle.write(work)),
    enqueue: async (params) => enqueueOn(handle, params),
    transact: (params) => unwrapCaller(handle.write((session) => transact(session, params), "guarded")),
    count: async (params) => {
      if (isCounted(params.filter)) await countNew(handle);
      return handle.read((session) => count(session, params));
    },
  };
}

async function enqueueOn(
  handle: Handle,
  { jobs, tx, allOrNone: isWhole, follows }: EnqueueParams,
): Promise<EnqueueResult[]> {
  if (tx !== undefined) return handle.writeWithin(tx, (session) => enqueue(session, jobs));
  await follows;
  if (!isWhole) return handle.write((session) => enqueue(session, jobs));
  return allOrNone(jobs, () => handle.write((session) => assertNoneRefused(enqueue(session, jobs))));
}

/** Counts new jobs for all readers. If that cannot be written, each query counts them again. */
async function countNew(handle: Handle): Promise<void> {
  if (!(await handle.read(isBehind))) return;
  let more = true;
  while (more) more = await handle.write(countOn).catch(() => false);
}
