import { EscapementError } from "../../errors.ts";
import { bind } from "../../store/bind.ts";
import type { StoreAddress, StoreContext } from "../../store/opening.ts";
import type { PruneParams, PruneResult } from "../../store/reaping.ts";
import type { Store } from "../../store/store.ts";
import { cancel, prune, reap, redrive, remove, update } from "./change.ts";
import { claim, extend, finish, report, step } from "./claim.ts";
import type { RedisClient } from "./connection/client.ts";
import type { Link } from "./connection/link.ts";
import type { ResolvedOptions } from "./connection/options.ts";
import { enqueue } from "./enqueue.ts";
import { durabilityOf, health, readFacts } from "./health.ts";
import { history, pruneHistory, recordHistory } from "./history.ts";
import { isMade, migrate, missingNamespace, pendingMigrations } from "./migrate.ts";
import { Channel } from "./notices.ts";
import { audit, depths, note, pruneAudit, record, scan } from "./operations.ts";
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
import { Session } from "./session.ts";
import { usage } from "./usage.ts";

interface RedisStoreParts {
  readonly link: Link;
  readonly options: ResolvedOptions;
  readonly context: StoreContext;
  readonly address: StoreAddress | null;
  newListener(): Promise<RedisClient>;
}

/** Each verb is one script per slot involved, which Redis runs alone; they are in lua/. */
const verbs = {
  update,
  cancel,
  redrive,
  remove,
  claim,
  finish,
  step,
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

export async function openRedisStore(parts: RedisStoreParts): Promise<Store> {
  const { link, options, context, address, newListener } = parts;
  const { prefix, slots, clock, callTimeoutMs } = options;
  await link.open();
  const { durability } = durabilityOf(link, await readFacts(link));
  const session = new Session({ link, prefix, namespace: context.namespace, slots, clock });
  const { channels } = session;
  const channel = new Channel({ link, channels, callTimeoutMs, log: context.log, newClient: newListener });
  let made = await isMade(session);
  const existing = (): Session => (made ? session : missingNamespace(session));
  return {
    capabilities: {
      transactions: false,
      listen: true,
      timePrecisionMs: 1,
      durability,
      acrossSlots: slots === 1,
    },
    address,
    migrate: async () => {
      await migrate(session);
      made = true;
    },
    pendingMigrations: async () => pendingMigrations(session),
    health: () => health(session),
    close: async () => {
      session.close();
      channel.close();
      link.close();
    },
    subscribe: async (listener) => {
      const unsubscribe = await channel.subscribe(listener);
      return async () => unsubscribe();
    },

    ...bind(verbs, async (work) => work(existing())),
    enqueue: async (params) => {
      if (params.tx !== undefined) throw noTransactions();
      return enqueue(existing(), params);
    },
    transact: async () => {
      throw noTransactions();
    },
  };
}

function noTransactions(): EscapementError {
  return new EscapementError(
    "transaction-unavailable",
    "Redis has no transactions that a job could join; enqueue without tx, or use an SQL store",
  );
}
