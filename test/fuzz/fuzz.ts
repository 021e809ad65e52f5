import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { inspect } from "node:util";
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
  readonly grownBytes: number;
  readonly what: string;
  /** What must not have happened; empty when all is well. */
  readonly failures: readonly string[];
}

const batchSize = 100;
const patientMs = 120_000;
/** Generous: what counts is that it does not grow with the number of messages. */
const mostGrownBytes = 512 * 1_048_576;

async function until(what: string, isSo: () => boolean): Promise<string | null> {
  const deadline = performance.now() + patientMs;
  while (!isSo()) {
    if (performance.now() > deadline) return `waited ${patientMs / 1_000} s in vain until ${what}`;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return null;
}

function* batches(messages: Iterable<RawMessage>): Generator<RawMessage[]> {
  let batch: RawMessage[] = [];
  for (const message of messages) {
    if (batch.push(message) < batchSize) continue;
    yield batch;
    batch = [];
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
  let [sent, taken, slowestMs, startBytes] = [0, 0, 0, 0];
  const probe = async (id: string): Promise<void> => {
    const beganAt = performance.now();
    taken += await target.publish([goodMessage(id)]);
    const late = await until(`the good message ${id} is handled`, () => handled.has(id));
    if (late !== null) failures.push(late);
    slowestMs = Math.max(slowestMs, performance.now() - beganAt);
  };
  for (const batch of batches(brokenMessages(seed, messages))) {
    if (failures.length > 0) break;
    for (const { id, story, isFatal } of batch) if (isFatal) fatal.set(id, story);
    sent += batch.length;
    taken += await target.publish(batch);
    await probe(`good-${seed}-${sent}`);
    // What is needed once is there by now.
    if (startBytes === 0) startBytes = process.memoryUsage.rss();
  }
  const unended = await until("every message has ended", () => target.ended() >= taken);
  if (unended !== null) failures.push(`${unended}: ${target.ended()} of ${taken}`);
  const grownBytes = process.memoryUsage.rss() - startBytes;
  if (grownBytes > mostGrownBytes) failures.push(`the process has grown by ${grownBytes} bytes`);
  return { sent, taken, slowestMs, grownBytes, what: target.describe(), failures };
}
