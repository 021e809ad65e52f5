import { EscapementError } from "../../errors.ts";
import type { NodeRecord, SeenNode } from "../../store/nodes.ts";
import type { QueueChange, QueueConfig } from "../../store/queues.ts";
import { instantOf } from "../../unreadable.ts";
import { readNodeRecord } from "../node-record.ts";
import { Reader } from "./connection/wire.ts";
import { pairsOf, type Session } from "./session.ts";

/** Every slot has the same configuration; it is read from the first. */
export async function configureQueue(session: Session, change: QueueChange): Promise<QueueConfig> {
  const { queue, paused, concurrency, rate } = change;
  if (session.slots > 1 && ((concurrency ?? null) !== null || (rate ?? null) !== null)) {
    throw new EscapementError(
      "store-unsupported",
      `queue ${JSON.stringify(queue)} cannot have limits on a Redis namespace that is spread over ${session.slots} slots; limit it in a namespace with one slot`,
    );
  }
  const json = JSON.stringify({
    paused,
    ...(concurrency === undefined ? {} : { concurrency: concurrency ?? false }),
    ...(rate === undefined ? {} : { rate: rate === null ? false : [rate.limit, rate.perMs] }),
  });
  const [first = Buffer.alloc(0)] = await Promise.all(
    session.everySlot.map((index) => session.text("configure-queue", index, queue, json)),
  );
  return readConfig(queue, first);
}

export async function queues(session: Session): Promise<QueueConfig[]> {
  const pairs = pairsOf(await session.list("queues", 0));
  return pairs.map(([queue, text]) => readConfig(queue, text)).sort((a, b) => compareText(a.queue, b.queue));
}

/** What cannot be read may have said that it is paused, and the scripts take it so. */
function readConfig(queue: string, text: Buffer): QueueConfig {
  try {
    return readWhole(queue, new Reader(text));
  } catch {
    return { queue, paused: true, concurrency: null, rate: null };
  }
}

function readWhole(queue: string, reader: Reader): QueueConfig {
  const paused = reader.u8() === 1;
  const [concurrency, limit, perMs] = [reader.f64(), reader.f64(), reader.f64()];
  return {
    queue,
    paused,
    concurrency: Number.isFinite(concurrency) ? concurrency : null,
    rate: Number.isFinite(limit) ? { limit, perMs } : null,
  };
}

/** Nodes belong to no slot; they are kept in the first. */
export async function putNode(session: Session, { id, ...node }: NodeRecord): Promise<void> {
  await session.run("put-node", 0, id, JSON.stringify(node));
}

export async function removeNode(session: Session, { id }: { readonly id: string }): Promise<void> {
  await session.run("remove-node", 0, id);
}

export async function nodes(session: Session): Promise<SeenNode[]> {
  const [time = Buffer.alloc(8), ...list] = await session.list("nodes", 0);
  const now = new Reader(time).f64();
  const seen = pairsOf(list).map(([id, text]) => readNode(id, text, now));
  return seen.sort((a, b) => compareText(a.id, b.id));
}

/** One that is cut short takes no other with it. */
function readNode(id: string, text: Buffer, now: number): SeenNode {
  try {
    const reader = new Reader(text);
    const [seenAt, startedAt] = [reader.f64(), reader.f64()];
    const node = readNodeRecord(id, reader.rest());
    const alive = now - seenAt <= node.ttlMs;
    return { ...node, startedAt: instantOf(startedAt), seenAt: instantOf(seenAt), alive };
  } catch {
    return { ...readNodeRecord(id, ""), startedAt: new Date(0), seenAt: new Date(0), alive: false };
  }
}

export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
