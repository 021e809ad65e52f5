import { EscapementError } from "../../errors.ts";
import { instantOf } from "../../mend.ts";
import { readNodeRecord } from "../../node-record.ts";
import type { NodeRecord, QueueChange, QueueConfig, SeenNode } from "../../store.ts";
import { pairsOf, type Space } from "./space.ts";
import { Reader } from "./wire.ts";

/** Every slot obeys the same configuration; the first one tells it. */
export async function configureQueue(space: Space, change: QueueChange): Promise<QueueConfig> {
  const { queue, paused, concurrency, rate } = change;
  if (space.slots > 1 && ((concurrency ?? null) !== null || (rate ?? null) !== null)) {
    throw new EscapementError(
      "store-unsupported",
      `queue ${JSON.stringify(queue)} cannot have limits on a Redis namespace that is spread over ${space.slots} slots; limit it in one that has one slot`,
    );
  }
  const json = JSON.stringify({
    paused,
    ...(concurrency === undefined ? {} : { concurrency: concurrency ?? false }),
    ...(rate === undefined ? {} : { rate: rate === null ? false : [rate.limit, rate.perMs] }),
  });
  const [first = Buffer.alloc(0)] = await Promise.all(
    space.everySlot.map((index) => space.text("configure-queue", index, queue, json)),
  );
  return readConfig(queue, first);
}

export async function queues(space: Space): Promise<QueueConfig[]> {
  const pairs = pairsOf(await space.list("queues", 0));
  return pairs.map(([queue, text]) => readConfig(queue, text)).sort((a, b) => compareText(a.queue, b.queue));
}

function readConfig(queue: string, text: Buffer): QueueConfig {
  const reader = new Reader(text);
  const paused = reader.u8() === 1;
  const [concurrency, limit, perMs] = [reader.f64(), reader.f64(), reader.f64()];
  return {
    queue,
    paused,
    concurrency: Number.isFinite(concurrency) ? concurrency : null,
    rate: Number.isFinite(limit) ? { limit, perMs } : null,
  };
}

/** Nodes are of no slot; they are kept in the first. */
export async function putNode(space: Space, { id, ...node }: NodeRecord): Promise<void> {
  await space.run("put-node", 0, id, JSON.stringify(node));
}

export async function removeNode(space: Space, id: string): Promise<void> {
  await space.run("remove-node", 0, id);
}

export async function nodes(space: Space): Promise<SeenNode[]> {
  const [time = Buffer.alloc(8), ...list] = await space.list("nodes", 0);
  const now = new Reader(time).f64();
  const seen = pairsOf(list).map(([id, text]): SeenNode => {
    const reader = new Reader(text);
    const [seenAt, startedAt] = [reader.f64(), reader.f64()];
    const node = readNodeRecord(id, reader.rest());
    return {
      ...node,
      startedAt: instantOf(startedAt),
      seenAt: instantOf(seenAt),
      alive: now - seenAt <= node.ttlMs,
    };
  });
  return seen.sort((a, b) => compareText(a.id, b.id));
}

export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
