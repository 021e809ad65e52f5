import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { z } from "zod";
import { createInbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { scratchFolder } from "../scratch.ts";
import { brokenMessages, goodMessage, type RawMessage } from "./broken-messages.ts";
import { httpTarget } from "./http.ts";
import { kafkaTarget } from "./kafka.ts";
import { natsTarget } from "./nats.ts";
import { redisStreamsTarget } from "./redis-streams.ts";
import type { OpenTarget, Target } from "./target.ts";

export const targets: Readonly<Record<string, OpenTarget>> = {
  http: httpTarget,
  kafka: kafkaTarget,
  nats: natsTarget,
  "redis-streams": redisStreamsTarget,
};

export interface FuzzResult {
  readonly sent: number;
  readonly taken: number;
  /** How long the slowest good message took, with all the broken ones before it. */
  readonly slowestMs: number;
  /** What it holds at the end and did not hold after the first messages. */
  readonly grownBytes: number;
  readonly what: string;
  /** What must not have happened; empty when all is well. */
  readonly failures: readonly string[];
}

const batchSize = 100;
/** A good message takes a tenth of a second, with a hundred broken ones before it. */
const handledWithinMs = 20_000;
/** Brokers deliver some messages again, after waits of their own. */
const endedWithinMs = 120_000;
/** What is held at the end differs by 2 MiB from run to run. A leak of 4 KiB for each of 2,000 messages is too much. */
const grownOnceBytes = 4 * 1_048_576;
const grownPerMessageBytes = 1_024;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** What is still referred to, in the heap of JavaScript and beside it. */
async function heldBytes(): Promise<number> {
  const held: number[] = [];
  for (let n = 0; n < 5; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    held.push(heapUsed + external);
  }
  return Math.min(...held);
}

async function until(what: string, withinMs: number, isSo: () => boolean): Promise<string | null> {
  const deadline = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > deadline) return `waited ${withinMs / 1_000} s in vain until ${what}`;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return null;
}

function* batches(messages: Iterable<RawMessage>): Generator<RawMessage[]> {
  const batch: RawMessage[] = [];
  for (const message of messages) {
    // What has been handed over must not be held here: some messages are large.
    if (batch.push(message) === batchSize) yield batch.splice(0);
  }
  if (batch.length > 0) yield batch;
}

/** Throws broken messages at a transport, and good ones among them, which must be handled whatever came before. */
export async function fuzz(name: string, messages: number, seed: number): Promise<FuzzResult> {
  const handled = new Set<string>();
  const fatal = new Map<string, string>();
  const failures: string[] = [];
  const job = defineJob({
    name: "work",
    input: z.object({ id: z.string() }),
    retry: { attempts: 1 },
    run: ({ input: { id } }) => {
      handled.add(id);
      if (fatal.has(id)) failures.push(`${id} reached its handler, and had: ${fatal.get(id)}`);
    },
  });
  const path = join(scratchFolder("fuzz"), "inbox.db");
  await using inbox = createInbox({ store: sqliteInbox({ path, durability: "normal" }) });
  const open = targets[name];
  if (open === undefined)
    throw new Error(`expected one of ${Object.keys(targets).join(", ")}, got "${name}"`);
  // A source that begins anew because of a message would get it again, and again: redeliveries can hide that for a while.
  const warn = (facts: object, text: string): void => {
    if (/could not be read/.test(text)) failures.push(`the source began anew: ${inspect(facts)}`);
  };
  const log = { ...silentLogger, warn };
  await using target: Target = await open.open({ jobs: [job], inbox, log });
  let [sent, taken, slowestMs] = [0, 0, 0];
  const probe = async (id: string): Promise<void> => {
    const beganAt = performance.now();
    taken += await target.publish([goodMessage(id)]);
    const late = await until(`the good message ${id} is handled`, handledWithinMs, () => handled.has(id));
    if (late !== null) failures.push(late);
    slowestMs = Math.max(slowestMs, performance.now() - beganAt);
  };
  const broken = batches(brokenMessages(seed, messages));
  const throwUntil = async (count: number): Promise<void> => {
    while (sent < count && failures.length === 0) {
      const batch: RawMessage[] = broken.next().value ?? [];
      for (const { id, story, isFatal } of batch) if (isFatal) fatal.set(id, story);
      sent += batch.length;
      taken += await target.publish(batch);
      await probe(`good-${seed}-${sent}`);
    }
    const unended = await until("every message has ended", endedWithinMs, () => target.ended() >= taken);
    if (unended !== null) failures.push(`${unended}: ${target.ended()} of ${taken}`);
  };
  // What is needed once is there after the first.
  await throwUntil(messages / 4);
  const [startBytes, before] = [await heldBytes(), sent];
  await throwUntil(messages);
  const grownBytes = (await heldBytes()) - startBytes;
  const mostGrownBytes = grownOnceBytes + grownPerMessageBytes * (sent - before);
  if (grownBytes > mostGrownBytes)
    failures.push(`the process holds ${grownBytes} bytes more, of at most ${mostGrownBytes}`);
  return { sent, taken, slowestMs, grownBytes, what: target.describe(), failures };
}
