import { crc32 } from "node:zlib";
import { type Clock, sleep } from "../../clock.ts";
import type { Message } from "../../message/message.ts";
import { acknowledged, ambiguous, heldBack, refused, textOf } from "../../message/publish-result.ts";
import type { PublishOptions, PublishResult, Transport } from "../../message/transport.ts";
import { reconnectDelayMs } from "../../runtime/transient.ts";
import { Deadline, late } from "../deadline.ts";
import { connectTimeoutMs, type StreamClient, untilReady } from "./client.ts";
import { encodeEntry } from "./entry.ts";
import { streamOf } from "./stream-name.ts";

export interface RedisStreamsParts {
  readonly client: StreamClient;
  readonly clock: Clock;
  readonly where: string;
  readonly maxLength: number | null;
  readonly shards: number;
  readonly maxMessageBytes: number;
  readonly isCluster: boolean;
}

/** What is written in one go: enough to hide the round trip, little enough to answer in time. */
const mostAtOnce = 1_000;
const mostBytesAtOnce = 1_048_576;
const reachAttempts = 5;

/** A message in flight, with its place among the answers. */
interface Numbered {
  readonly index: number;
  readonly args: readonly (string | number)[];
  readonly bytes: number;
}

/** Appends to Redis Streams, many entries per round trip. */
export class RedisStreamsTransport implements Transport {
  readonly #parts: RedisStreamsParts;
  #closed = false;

  constructor(parts: RedisStreamsParts) {
    this.#parts = parts;
  }

  async publish(messages: readonly Message[], { timeoutMs }: PublishOptions): Promise<PublishResult[]> {
    const { client, clock, where } = this.#parts;
    if (this.#closed) return messages.map(() => refused(`Redis ${where}: this transport was closed`));
    const deadline = new Deadline(clock, timeoutMs);
    const trouble = await deadline.within(untilReady(client), connectTimeoutMs);
    if (trouble !== null) {
      const why = trouble === late ? "no connection in time" : textOf(trouble);
      return messages.map(() => refused(`Redis ${where}: ${why}`, { cause: trouble }));
    }
    const results: PublishResult[] = new Array(messages.length).fill(heldBack);
    const streams = this.#byStream(messages, results);
    await Promise.all(
      Array.from(streams, async ([stream, entries]) => {
        const trouble = this.#parts.isCluster ? await this.#reach(stream, deadline) : null;
        if (trouble === null) return this.#append(entries, results, deadline);
        for (const { index } of entries) results[index] = trouble;
      }),
    );
    return results;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#parts.client.disconnect();
  }

  /** On a Cluster, everything written in one go must be in one slot. */
  #byStream(messages: readonly Message[], results: PublishResult[]): Map<string, Numbered[]> {
    const { shards, maxLength, maxMessageBytes } = this.#parts;
    const limit = maxLength === null ? [] : ["MAXLEN", "~", maxLength];
    const streams = new Map<string, Numbered[]>();
    for (const [index, message] of messages.entries()) {
      const fields = encodeEntry(message);
      const bytes = fields.reduce((sum, field) => sum + Buffer.byteLength(field), 0);
      if (bytes > maxMessageBytes) {
        const text = `the message has ${bytes} bytes, and maxMessageBytes is ${maxMessageBytes}`;
        results[index] = refused(text, { permanent: true });
        continue;
      }
      const shard = shards === 1 ? 0 : crc32(message.key) % shards;
      const stream = streamOf(message.destination, shard, shards);
      const entries = streams.get(stream) ?? [];
      entries.push({ index, bytes, args: [stream, ...limit, "*", ...fields] });
      streams.set(stream, entries);
    }
    return streams;
  }

  /**
   * A Cluster client does not say whether it had sent what failed with the connection to a node. To make a node that is down a
   * refusal, another command is sent to it first.
   */
  async #reach(stream: string, deadline: Deadline): Promise<PublishResult | null> {
    const { client, clock, where } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await deadline.within(client.call("TYPE", [stream]), connectTimeoutMs);
        return answer === late ? refused(`Redis ${where}: no answer in time`) : null;
      } catch (error) {
        // Its connections to the nodes come and go as it discovers them, and the first call on one of them may be lost to that.
        if (attempt === reachAttempts || deadline.isOver) return refused(`Redis ${where}: ${textOf(error)}`);
        await sleep(clock, reconnectDelayMs(attempt, Math.random()));
      }
    }
  }

  async #append(entries: readonly Numbered[], results: PublishResult[], deadline: Deadline): Promise<void> {
    for (const part of portions(entries)) {
      if (deadline.isOver) return;
      const answers = await this.#write(part, deadline);
      let isSure = true;
      for (const [place, { index }] of part.entries()) {
        const result = this.#judge(answers, place);
        results[index] = result;
        isSure &&= result.kind === "acknowledged";
      }
      if (!isSure) return;
    }
  }

  /**
   * The connection is shared: a call that drops it because its own time is over also takes it from the others. What was not even written by then
   * is written again: a refusal would cost an at-most-once job its only attempt.
   */
  async #write(part: readonly Numbered[], deadline: Deadline): Promise<unknown> {
    const { client, clock } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const pipeline = client.pipeline();
      for (const { args } of part) pipeline.call("XADD", args);
      const answers: unknown = await deadline.within(pipeline.exec().catch((error: unknown) => error));
      // What it still holds back must not be sent later.
      if (answers === late) client.disconnect(true);
      if (attempt === reachAttempts || !part.every((_, place) => isUnsent(answers, place))) return answers;
      await sleep(clock, Math.min(deadline.leftMs, reconnectDelayMs(attempt, Math.random())));
      // Waiting for a closed client would open it again.
      if (deadline.isOver || this.#closed) return answers;
      const trouble = await deadline.within(untilReady(client), connectTimeoutMs);
      if (trouble !== null || deadline.isOver) return answers;
    }
  }

  #judge(answers: unknown, place: number): PublishResult {
    const { where } = this.#parts;
    if (answers === late) return ambiguous(`Redis ${where}: no answer in time`);
    const error = errorAt(answers, place);
    if (error === null) return acknowledged;
    const text = `Redis ${where}: ${textOf(error)}`;
    // The client attaches the command to its errors, and with it a job's input: only the message is kept.
    if (!(error instanceof Error)) return ambiguous(text);
    if (error.name === "ReplyError") return refused(text, { permanent: isForGood.test(error.message) });
    return isUnsent(answers, place) ? refused(text) : ambiguous(text);
  }
}

/** What a person must fix for this very stream. A full, loading or failing-over server recovers. */
const isForGood = /^(NOPERM|WRONGTYPE)\b/;

/** What the client reports when it did not even try. */
const wasNotSent = /enableOfflineQueue|Failed to refresh slots cache|None of startup nodes is available/;

function errorAt(answers: unknown, place: number): unknown {
  return Array.isArray(answers) ? answers[place]?.[0] : answers;
}

function isUnsent(answers: unknown, place: number): boolean {
  const error = errorAt(answers, place);
  return error instanceof Error && wasNotSent.test(error.message);
}

function* portions(entries: readonly Numbered[]): Generator<Numbered[]> {
  let part: Numbered[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (part.length > 0 && (part.length === mostAtOnce || bytes + entry.bytes > mostBytesAtOnce)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(entry);
    bytes += entry.bytes;
  }
  if (part.length > 0) yield part;
}
