import type { AnyDefinition } from "../definition.ts";
import type { JobState } from "../job.ts";
import { isTerminal } from "../state.ts";
import type { StoredJob } from "../store/jobs.ts";
import type { PartitionRecord } from "../store/partitions.ts";
import type { Store } from "../store/store.ts";
import type { Cause } from "./cause.ts";
import { lineOf, type Sentence, sentenceOf } from "./sentence.ts";
import { serversOf } from "./who-serves.ts";
import { type Facts, whyWaiting } from "./why-waiting.ts";

/** Why a job has not ended, what matters most first. */
export interface Diagnosis {
  readonly id: string;
  readonly state: JobState;
  /** Empty when it has ended. */
  readonly causes: readonly (Cause & Sentence)[];
}

/** How many active jobs are searched for those that hold a key; each is read with its input. */
const mostHoldersRead = 100;
const mostShown = 10;

type Parent = Facts["parents"][number];

/** Asks the store why a job has not ended. Each question is a plain read, so the answers may be a moment apart. */
export async function diagnose(
  store: Store,
  definitions: ReadonlyMap<string, AnyDefinition>,
  id: string,
): Promise<Diagnosis | null> {
  const [job] = await store.get({ ids: [id] });
  if (job === null || job === undefined) return null;
  if (isTerminal(job.state)) return { id: job.id, state: job.state, causes: [] };
  const causes = whyWaiting(await gather(store, definitions, job));
  return {
    id: job.id,
    state: job.state,
    causes: causes.map((cause) => ({ ...cause, ...sentenceOf(cause, job) })),
  };
}

/** The causes in one line, for the end of a message. */
export function summaryOf({ causes }: Diagnosis): string {
  return causes.map(lineOf).join("; ");
}

async function gather(
  store: Store,
  definitions: ReadonlyMap<string, AnyDefinition>,
  job: StoredJob,
): Promise<Facts> {
  const { queue, concurrencyKey, rateKey } = job;
  const [usage, queues, nodes, trail, parents, partition] = await Promise.all([
    store.usage({ queue, concurrencyKey, rateKey }),
    store.queues(),
    store.nodes(),
    store.trail({ id: job.id }),
    parentsOf(store, job),
    partitionOf(store, job),
  ]);
  const names = [...new Set(serversOf(job, nodes).flatMap((node) => node.names))];
  const [occupied, holders] = await Promise.all([
    store.count({ filter: { states: ["active"], names }, by: [] }),
    usage.activeUnderKey === 0 ? [] : holdersOf(store, job),
  ]);
  return {
    job,
    lastEvent: trail.findLast(({ kind }) => kind !== "log" && kind !== "updated")?.kind ?? null,
    definition: definitions.get(job.name) ?? null,
    queue: queues.find((one) => one.queue === queue) ?? null,
    nodes,
    usage,
    holders,
    occupied: occupied.reduce((sum, { count }) => sum + count, 0),
    parents,
    partition,
  };
}

async function parentsOf(store: Store, { state, waitsFor }: StoredJob): Promise<Facts["parents"]> {
  if (state !== "blocked") return [];
  const ids = waitsFor.slice(0, mostShown);
  const parents = await store.get({ ids });
  return ids.map((id, index) => ({ id, state: parents[index]?.state ?? null })).sort(byUse);
}

/** A blocked parent only leads to its own parents, so the others come first; stores keep no order. */
function byUse(one: Parent, other: Parent): number {
  return Number(one.state === "blocked") - Number(other.state === "blocked") || (one.id < other.id ? -1 : 1);
}

/** A key carries its definition's name, so only jobs of that name can hold it. */
async function holdersOf(store: Store, { name, concurrencyKey }: StoredJob): Promise<string[]> {
  const { jobs } = await store.list({
    filter: { states: ["active"], names: [name] },
    limit: mostHoldersRead,
    order: "oldest",
    cursor: null,
  });
  const holders = jobs.filter((one) => one.concurrencyKey === concurrencyKey && !one.relayed);
  return holders.slice(0, mostShown).map(({ id }) => id);
}

async function partitionOf(store: Store, { relayed, slot }: StoredJob): Promise<PartitionRecord | null> {
  if (!relayed) return null;
  const { partitions } = await store.partitions();
  return partitions.find(({ firstSlot, endSlot }) => slot >= firstSlot && slot < endSlot) ?? null;
}
