import { allOrNone, assertNoneRefused } from "../../store/all-or-none.ts";
import { bind } from "../../store/bind.ts";
import type {
  ClaimParams,
  ClaimResult,
  ExtendParams,
  ExtendResult,
  FinishParams,
  FinishResult,
  ReportParams,
  StepParams,
  StepResult,
} from "../../store/claims.ts";
import type { EnqueueParams, EnqueueResult, NewJob } from "../../store/jobs.ts";
import type { StoreAddress } from "../../store/opening.ts";
import type {
  AcquireParams,
  CheckpointParams,
  CheckpointResult,
  PartitionGrant,
} from "../../store/partitions.ts";
import type { PruneParams, PruneResult, ReapParams, ReapResult } from "../../store/reaping.ts";
import type { FireParams, FireResult, PutScheduleParams, PutScheduleResult } from "../../store/schedules.ts";
import type { Store } from "../../store/store.ts";
import { update } from "./change.ts";
import { claim } from "./claim.ts";
import { depths } from "./depths.ts";
import { enqueue } from "./enqueue.ts";
import { checkpointFast, mayCheckpointFast } from "./fast/checkpoint.ts";
import { enqueueInBulk } from "./fast/enqueue.ts";
import { finishFast } from "./fast/finish.ts";
import { mayStepFast, stepFast } from "./fast/step.ts";
import { finish } from "./finish.ts";
import { Handle, type HandleOptions } from "./handle.ts";
import { health } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { foldCounts } from "./jobs/counts.ts";
import { isIndependent, newTag } from "./jobs/insert.ts";
import { remove } from "./jobs/remove.ts";
import { cancel, redrive } from "./jobs/select.ts";
import { extend, reap, report } from "./leases.ts";
import { pendingMigrations } from "./migrate.ts";
import { audit, note, pruneAudit, record, scan } from "./operations.ts";
import { partitionDue } from "./partition/due.ts";
import { partitions } from "./partition/table.ts";
import { acquirePartitions, checkpoint, releasePartitions, renewPartitions } from "./partitions.ts";
import { prune } from "./prune.ts";
import { count, get, list, trail } from "./questions.ts";
import { configureQueue, nodes, putNode, queues, removeNode } from "./queues.ts";
import { dueSchedules, fire, occurrences, putSchedule, removeSchedule, schedules } from "./schedules.ts";
import type { Session } from "./session.ts";
import { usage } from "./usage.ts";

/** Verbs that change nothing. */
const questions = {
  get,
  list,
  count,
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

/** Verbs of one transaction each. */
const changes = {
  update,
  cancel,
  redrive,
  remove,
  note,
  record,
  recordHistory,
  configureQueue,
  putNode,
  removeNode,
  removeSchedule,
  renewPartitions,
  releasePartitions,
};

export async function openMysqlStore(options: HandleOptions, address: StoreAddress | null): Promise<Store> {
  const handle = new Handle(options);
  const durability = await handle.open();
  return {
    capabilities: {
      transactions: true,
      listen: handle.listens,
      timePrecisionMs: 1,
      durability,
      acrossSlots: true,
    },
    address,
    migrate: () => handle.migrate(),
    pendingMigrations: () => handle.ask(({ link }) => pendingMigrations(link)),
    health: () => handle.ask((session) => health(session, handle.where)),
    close: () => handle.close(),
    subscribe: async (listener) => handle.subscribe(listener),

    ...bind(questions, (work) => handle.read(async (session: Session) => work(session))),
    ...bind(changes, (work) => handle.write(async (session: Session) => work(session))),
    ...bind(prepared, async (work) => work(handle)),
    transact: async (params) => {
      await handle.prepareClaimer(params.claimer);
      return handle.transact({
        ...params,
        // The caller's function may enqueue inside the transaction.
        run: (tx) => params.run(tx, (jobs) => enqueueOn(handle, { jobs, tx })),
      });
    },
  };
}

/** Verbs that must know something before their transaction begins, have a fast path, or take several transactions. */
const prepared = {
  enqueue: enqueueOn,
  claim: async (handle: Handle, params: ClaimParams): Promise<ClaimResult> =>
    (await stepOn(handle, { finishes: [], claim: params })).claimed,
  finish: async (handle: Handle, params: FinishParams): Promise<FinishResult[]> => {
    const { claimer, finishes } = params;
    await handle.prepareClaimer(claimer);
    if (mayStepFast(await handle.known(), finishes, null)) {
      const fast = await handle.write((session) => finishFast(session, claimer, finishes));
      if (fast !== null) return fast;
    }
    return handle.write((session) => finish(session, params));
  },
  step: stepOn,
  extend: async (handle: Handle, params: ExtendParams): Promise<ExtendResult[]> => {
    await handle.prepareClaimer(params.claimer);
    return handle.write((session) => extend(session, params));
  },
  report: async (handle: Handle, params: ReportParams): Promise<void> => {
    await handle.prepareClaimer(params.claimer);
    return handle.write((session) => report(session, params));
  },
  reap: async (handle: Handle, params: ReapParams): Promise<ReapResult> => {
    const result = await handle.write((session) => reap(session, params));
    const moreCounts = await handle.write(foldCounts);
    return { ...result, more: result.more || moreCounts };
  },
  prune: async (handle: Handle, params: PruneParams): Promise<PruneResult> => {
    const moreEntries = await handle.write((session) => pruneAudit(session, params));
    const moreHistory = await handle.write((session) => pruneHistory(session, params));
    const { pruned, more } = await handle.write((session) => prune(session, params));
    return { pruned, more: more || moreEntries || moreHistory };
  },
  putSchedule: async (handle: Handle, params: PutScheduleParams): Promise<PutScheduleResult> => {
    await handle.prepareLines(jobsOf(params.skipped));
    return handle.write((session) => putSchedule(session, params));
  },
  fire: async (handle: Handle, params: FireParams): Promise<FireResult[]> => {
    await handle.prepareLines(params.fires.flatMap((one) => jobsOf(one.occurrences)));
    return handle.write((session) => fire(session, params));
  },
  acquirePartitions: async (handle: Handle, params: AcquireParams): Promise<PartitionGrant[]> => {
    await handle.prepareClaimer(params.owner);
    return handle.write((session) => acquirePartitions(session, params));
  },
  checkpoint: async (handle: Handle, params: CheckpointParams): Promise<CheckpointResult> => {
    await handle.prepareClaimer(params.owner);
    if (mayCheckpointFast(await handle.known(), params)) {
      const fast = await handle.write((session) => checkpointFast(session, params));
      if (fast !== null) return fast;
    }
    return handle.write((session) => checkpoint(session, params));
  },
};

async function enqueueOn(
  handle: Handle,
  { jobs, tx, allOrNone: isWhole, follows }: EnqueueParams,
): Promise<EnqueueResult[]> {
  const tag = newTag();
  if (tx !== undefined) return handle.enqueueWithin(tx, jobs, (session) => enqueue(session, jobs, tag));
  await follows;
  await handle.prepareLines(jobs);
  if (jobs.every(isIndependent)) {
    // A connection of a caller's pool does not report how many jobs it added.
    return handle.write(
      (session) =>
        session.link.countsChanges ? enqueueInBulk(session, jobs, tag) : enqueue(session, jobs, tag),
      false,
    );
  }
  if (!isWhole) return handle.write((session) => enqueue(session, jobs, tag));
  return allOrNone(jobs, () =>
    handle.write(async (session) => assertNoneRefused(await enqueue(session, jobs, tag))),
  );
}

async function stepOn(handle: Handle, { finishes, claim: params }: StepParams): Promise<StepResult> {
  const { claimer } = params;
  await handle.prepareClaimer(claimer);
  await handle.jitter();
  if (mayStepFast(await handle.known(), finishes, params)) {
    const fast = await handle.write((session) => stepFast(session, finishes, params));
    if (fast !== null) return fast;
  }
  return handle.write(async (session) => {
    const finished = await finish(session, { claimer, finishes });
    return { finished, claimed: await claim(session, params) };
  });
}

function jobsOf(occurrences: readonly { readonly job: NewJob | null }[]): NewJob[] {
  return occurrences.flatMap(({ job }) => job ?? []);
}
