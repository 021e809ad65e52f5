import { sleep } from "../../clock.ts";
import type { Delivered, SourceContext, SourceSession } from "../../message/source.ts";
import { reconnectDelayMs } from "../../runtime/transient.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { type StreamClient, untilReady } from "./client.ts";
import { decodeEntry } from "./entry.ts";
import { streamOf } from "./stream-name.ts";

export interface SessionParts extends SourceContext {
  readonly stream: string;
  readonly group: string;
  readonly shards: number;
  readonly leaseMs: number;
  readonly deleteHandled: boolean;
  /** This consumer's name in the group. */
  readonly member: string;
  readonly reader: StreamClient;
  readonly client: StreamClient;
}

type Deliver = (one: Delivered) => Promise<void>;

const mostAtOnce = 100;
const blockMs = 1_000;
const idleMs = 100;

/** Reads new entries, and periodically looks for entries whose consumer has gone silent. */
export class RedisStreamsSession implements SourceSession {
  readonly extendEveryMs: number;
  readonly #parts: SessionParts;
  readonly #streams: readonly string[];
  readonly #acknowledgements: Acknowledgements;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.extendEveryMs = parts.leaseMs / 3;
    const { stream, shards } = parts;
    this.#streams = Array.from({ length: shards }, (_, shard) => streamOf(stream, shard, shards));
    this.#acknowledgements = new Acknowledgements(parts);
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    await this.#patiently(signal, () => this.#makeGroups());
    await Promise.all([
      this.#loop(signal, () => this.#read(deliver, signal)),
      this.#loop(signal, () => this.#reclaim(deliver, signal)),
    ]);
  }

  async close(): Promise<void> {
    const { client, reader, group, member } = this.#parts;
    await this.#acknowledgements.flush();
    for (const stream of this.#streams) {
      // Only a member that holds nothing may be removed: its entries would be removed with it.
      const held = await client.call("XPENDING", [stream, group, "-", "+", 1, member]).catch(() => null);
      if (Array.isArray(held) && held.length === 0)
        await client.call("XGROUP", ["DELCONSUMER", stream, group, member]).catch(() => {});
    }
    reader.disconnect();
    client.disconnect();
  }

  async #loop(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) await this.#patiently(signal, work);
  }

  /** Repeats what fails, until it works or the consumer stops. */
  async #patiently(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock, log, stream } = this.#parts;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt === 1) log.warn({ error, stream }, "Redis could not be read; it is retried");
        if (error instanceof Error && /NOGROUP/.test(error.message)) await this.#makeGroups().catch(() => {});
        await sleep(clock, reconnectDelayMs(attempt, Math.random()), signal);
      }
    }
  }

  async #makeGroups(): Promise<void> {
    const { client, reader, group } = this.#parts;
    for (const one of [client, reader]) {
      const trouble = await untilReady(one);
      if (trouble !== null) throw trouble;
    }
    for (const stream of this.#streams) {
      await client.call("XGROUP", ["CREATE", stream, group, "0", "MKSTREAM"]).catch((error: Error) => {
        if (!error.message.startsWith("BUSYGROUP")) throw error;
      });
    }
  }

  async #read(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { group, member, reader, clock, capacity } = this.#parts;
    const count = Math.min(mostAtOnce, capacity);
    const isAlone = this.#streams.length === 1;
    let found = 0;
    for (const stream of this.#streams) {
      if (signal.aborted) return;
      // On a Cluster the streams are on several nodes, and a read must not block on one of them.
      const wait = isAlone ? ["BLOCK", blockMs] : [];
      const args = ["GROUP", group, member, "COUNT", count, ...wait, "STREAMS", stream, ">"];
      const entries = entriesOf(await reader.call("XREADGROUP", args));
      found += entries.length;
      await Promise.all(entries.map((entry) => deliver(this.#delivered(stream, entry, 1))));
    }
    if (found === 0 && !isAlone) await sleep(clock, idleMs, signal);
  }

  async #reclaim(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { group, member, client, clock, leaseMs } = this.#parts;
    for (const stream of this.#streams) {
      const range = [stream, group, "IDLE", leaseMs, "-", "+", mostAtOnce];
      const silent = (await client.call("XPENDING", range)) as [string, string, number, number][];
      if (silent.length === 0 || signal.aborted) continue;
      const counts = new Map(silent.map(([id, , , deliveries]) => [id, deliveries + 1]));
      for (const id of await this.#dropTrimmed(stream, [...counts.keys()])) counts.delete(id);
      if (counts.size === 0) continue;
      // The first member gets it: for the others it is no longer idle.
      const taken = await client.call("XCLAIM", [stream, group, member, leaseMs, ...counts.keys()]);
      const entries = (taken as (Entry | null)[]).filter((entry) => entry !== null);
      await Promise.all(
        entries.map((entry) => deliver(this.#delivered(stream, entry, counts.get(entry[0]) ?? 1))),
      );
    }
    await sleep(clock, leaseMs / 3, signal);
  }

  /**
   * Entries that were trimmed before they were handled, which would go unnoticed otherwise: Redis 7 drops them silently when
   * they are claimed, and older versions list them forever. One that is still pending after it was found gone was never acknowledged.
   */
  async #dropTrimmed(stream: string, ids: readonly string[]): Promise<readonly string[]> {
    const { group, client, log } = this.#parts;
    const isThere = async (id: string): Promise<boolean> =>
      ((await client.call("XRANGE", [stream, id, id])) as unknown[]).length > 0;
    const isPending = async (id: string): Promise<boolean> =>
      ((await client.call("XPENDING", [stream, group, id, id, 1])) as unknown[]).length > 0;
    const found = await Promise.all(ids.map(async (id) => (await isThere(id)) || !(await isPending(id))));
    const trimmed = ids.filter((_, index) => found[index] === false);
    if (trimmed.length === 0) return [];
    log.error({ stream, ids: trimmed }, "entries were trimmed before they were handled; they are lost");
    await client.call("XACK", [stream, group, ...trimmed]);
    return trimmed;
  }

  #delivered(stream: string, [id, fields]: Entry, deliveries: number): Delivered {
    const { group, member, client, leaseMs } = this.#parts;
    const claim = async (...how: readonly (string | number)[]): Promise<void> => {
      await client.call("XCLAIM", [stream, group, member, 0, id, ...how, "JUSTID"]);
    };
    return {
      message: decodeEntry(fields ?? []),
      position: `stream ${stream}, entry ${id}`,
      deliveries,
      ack: () => this.#acknowledgements.add(stream, id),
      // This one stays, even if entries are deleted once they are handled.
      abandon: async () => void (await client.call("XACK", [stream, group, id])),
      extend: () => claim("IDLE", 0),
      release: (attempts) => claim("IDLE", leaseMs, "RETRYCOUNT", deliveries - 1 + attempts),
    };
  }
}

type Entry = [id: string, fields: string[] | null];

/** The entries of the one stream that was read: a list of pairs in RESP2, a map in RESP3, which the client may return as a flat list. */
function entriesOf(answer: unknown): readonly Entry[] {
  if (answer === null || typeof answer !== "object") return [];
  const list: unknown[] = Array.isArray(answer) ? answer : Object.entries(answer);
  const pair = Array.isArray(list[0]) ? list[0] : list;
  return (pair[1] as Entry[] | undefined) ?? [];
}
