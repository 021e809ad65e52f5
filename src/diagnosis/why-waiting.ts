import type { AnyDefinition } from "../definition.ts";
import { type ErrorRecord, readErrorRecord } from "../errors.ts";
import { isFragile } from "../state.ts";
import type { RateLimit } from "../store/claims.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { SeenNode } from "../store/nodes.ts";
import type { PartitionRecord } from "../store/partitions.ts";
import type { TrailKind } from "../store/questions.ts";
import type { QueueConfig, RateWindow, Usage } from "../store/queues.ts";
import type { Cause, CauseFields } from "./cause.ts";
import { serversOf, whyUnserved } from "./who-serves.ts";

/** What was asked of the store about a job that has not ended. */
export interface Facts {
  readonly job: StoredJob;
  /** What befell it last, log lines left out. */
  readonly lastEvent: TrailKind | null;
  /** Null if this process does not know it; then its limits are not known either. */
  readonly definition: Pick<AnyDefinition, "concurrency" | "rate"> | null;
  readonly queue: QueueConfig | null;
  readonly nodes: readonly SeenNode[];
  readonly usage: Usage;
  /** Some of the active jobs with its concurrency key. */
  readonly holders: readonly string[];
  /** Active jobs that occupy the nodes that could run it. */
  readonly occupied: number;
  readonly parents: CauseFields["parents"]["parents"];
  /** Null if it is not relayed, or before any relay has divided the namespace. */
  readonly partition: PartitionRecord | null;
}

/** Why a job has not ended, what matters most first. Pure, so every reason is tested. Empty for a job that has ended. */
export function whyWaiting(facts: Facts): Cause[] {
  const { state } = facts.job;
  if (state === "blocked")
    return [
      { code: "parents", parents: facts.parents, count: facts.job.waitsFor.length },
      ...whyNobody(facts),
    ];
  if (state === "active") return whyActive(facts);
  if (state !== "waiting") return [];
  const held = [...whyNotDue(facts), ...whyNobody(facts)];
  if (!isDue(facts)) return held;
  const limits = facts.job.relayed ? whyUnpublished(facts) : whyLimited(facts);
  const all = [...held, ...limits];
  if (all.length > 0) return all;
  return [whyBusy(facts) ?? { code: "next-in-line", relayed: facts.job.relayed }];
}

function isDue({ job, usage }: Facts): boolean {
  return job.runAt <= usage.now;
}

function whyNotDue(facts: Facts): Cause[] {
  const { job, lastEvent, usage } = facts;
  const { runAt, expireAt } = job;
  if (expireAt !== null && expireAt <= usage.now && job.attempt === 0) return [{ code: "expired", expireAt }];
  const inMs = runAt.getTime() - usage.now.getTime();
  const error = errorOf(job);
  if (job.relayed && job.rollbacks > 0 && lastEvent === "rolled-back")
    return [{ code: "destination-refuses", rollbacks: job.rollbacks, error, runAt, inMs }];
  if (isDue(facts)) return [];
  if (lastEvent === "snoozed") return [{ code: "snoozed", runAt, inMs }];
  if (lastEvent !== "failed") return [{ code: "due-later", runAt, inMs }];
  const failures = job.attempt - job.crashes;
  return [{ code: "backoff", failures, attempts: job.attempts, error, runAt, inMs }];
}

function errorOf({ error }: StoredJob): ErrorRecord | null {
  return readErrorRecord(error);
}

/** What keeps every job of its name and queue from being taken. */
function whyNobody({ job, queue, nodes }: Facts): Cause[] {
  const unserved = whyUnserved(job, nodes);
  return [
    ...(queue?.paused === true ? [{ code: "queue-paused", queue: job.queue } as const] : []),
    ...(unserved === null ? [] : [unserved]),
  ];
}

function whyLimited(facts: Facts): Cause[] {
  const { job, queue, usage } = facts;
  const causes: Cause[] = [];
  if (isFragile(job)) causes.push({ code: "runs-alone", crashes: job.crashes, maxCrashes: job.maxCrashes });
  const limit = queue?.concurrency ?? null;
  if (limit !== null && usage.activeInQueue >= limit)
    causes.push({ code: "queue-concurrency", queue: job.queue, limit, active: usage.activeInQueue });
  const full = fullWindow(usage.queueWindow, queue?.rate ?? null, usage.now);
  if (full !== null && queue?.rate)
    causes.push({ code: "queue-rate", queue: job.queue, ...queue.rate, ...full });
  return [...causes, ...whyKeyFull(facts), ...whyKeyRated(facts)];
}

function whyKeyFull({ job, definition, usage, holders }: Facts): Cause[] {
  const { name, concurrencyKey } = job;
  const active = usage.activeUnderKey;
  const limit = definition?.concurrency?.limit ?? null;
  const isKnown = definition !== null;
  if (concurrencyKey === null || active === 0 || (isKnown && (limit === null || active < limit))) return [];
  return [{ code: "key-concurrency", name, key: ownKey(concurrencyKey, name), limit, active, jobs: holders }];
}

function whyKeyRated({ job, definition, usage }: Facts): Cause[] {
  const { name, rateKey } = job;
  const window = usage.keyWindow;
  if (rateKey === null || window === null) return [];
  const key = ownKey(rateKey, name);
  const { used, perMs } = window;
  if (definition === null) {
    const full = fullWindow(window, { limit: 1, perMs }, usage.now);
    return full === null ? [] : [{ code: "key-rate", name, key, limit: null, perMs, used, ...full }];
  }
  const full = fullWindow(window, definition.rate, usage.now);
  if (full === null || definition.rate === null) return [];
  const { limit, perMs: ruledMs } = definition.rate;
  return [{ code: "key-rate", name, key, limit, perMs: ruledMs, used, ...full }];
}

/** When a full window lets the next job go; null if it has room. */
function fullWindow(
  window: RateWindow | null,
  rate: RateLimit | null,
  now: Date,
): { readonly until: Date; readonly inMs: number } | null {
  if (window === null || rate === null || window.used < rate.limit) return null;
  const until = new Date(window.startedAt.getTime() + rate.perMs);
  const inMs = until.getTime() - now.getTime();
  return inMs <= 0 ? null : { until, inMs };
}

/** Keys carry their definition's name in the store; a limit without its own key is the bare name. */
function ownKey(key: string, name: string): string | null {
  return key === name ? null : key.slice(name.length + 1);
}

function whyUnpublished({ job, nodes, partition }: Facts): Cause[] {
  const { name } = job;
  if (whyUnserved(job, nodes) !== null) return [];
  if (partition?.owner == null)
    return [{ code: "partition-without-owner", partition: partition?.partition ?? null }];
  const owner = nodes.find(({ id }) => id === partition.owner);
  if (owner === undefined || owner.names.includes(name)) return [];
  return [{ code: "owner-without-route", name, partition: partition.partition, owner: owner.id }];
}

function whyBusy({ job, nodes, occupied }: Facts): Cause | null {
  if (job.relayed) return null;
  const servers = serversOf(job, nodes);
  const slots = servers.reduce((sum, { concurrency }) => sum + concurrency, 0);
  return occupied < slots ? null : { code: "all-slots-busy", nodes: servers.length, slots };
}

function whyActive({ job, nodes, usage, partition }: Facts): Cause[] {
  const { delivery, claimer, claimedAt } = job;
  if (claimer === null || claimedAt === null) return [];
  const forMs = usage.now.getTime() - claimedAt.getTime();
  if (job.relayed) {
    const isOwner = partition?.owner === claimer;
    if (!isOwner) return [{ code: "owner-changed", claimer, delivery }];
    return [{ code: "publishing", claimer, since: claimedAt, forMs }];
  }
  const node = nodes.find(({ id }) => id === claimer);
  const reapers = nodes.filter(({ alive, roles }) => alive && roles.includes("reaper")).length;
  if (node?.alive !== true)
    return [{ code: "claimer-silent", claimer, seenAt: node?.seenAt ?? null, delivery, reapers }];
  const running: Cause = { code: "running", claimer, since: claimedAt, forMs };
  return job.cancelRequested ? [{ code: "cancel-requested", claimer }, running] : [running];
}
