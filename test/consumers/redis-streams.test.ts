import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Redis } from "ioredis";
import { systemClock } from "../../src/clock.ts";
import { type ConsumeOptions, consume } from "../../src/consumer/index.ts";
import { newReceived } from "../../src/consumer/test/memory-source.ts";
import { createInbox, type Inbox } from "../../src/inbox/index.ts";
import { defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { until } from "../../src/testing/transports/scene.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { scratchFolder } from "../scratch.ts";

const server = await testbed.redis();

describe("a consumer of a Redis Stream", { skip: server.skip }, () => {
  const newPlace = () => ({ url: server.url, stream: `consumed-${randomUUID()}` });
  type Place = ReturnType<typeof newPlace>;
  const newInbox = (): Inbox =>
    createInbox({ store: sqliteInbox(join(scratchFolder("redis-consumer"), "inbox.db")) });
  const publish = async (place: Place, count: number): Promise<void> => {
    const route = redisStreams(place);
    const transport = await route.transport.open({ clock: systemClock, log: silentLogger });
    const messages = Array.from({ length: count }, (_, n) => ({
      ...newReceived("work", n),
      destination: route.destination,
      dedupeId: randomUUID(),
    }));
    await transport.publish(messages, { timeoutMs: 10_000 });
    await transport.close();
  };
  const start = async (
    place: Place,
    options: Pick<ConsumeOptions, "jobs" | "inbox"> & Partial<ConsumeOptions>,
  ) => {
    const from = redisStreamsSource({ ...place, group: "g", lease: "3s" });
    const consumer = consume({ from, onDead: () => {}, log: silentLogger, ...options });
    await consumer.start();
    return consumer;
  };

  test("what was given back at a stop still has its attempts", async () => {
    const place = newPlace();
    await publish(place, 2);
    let attempts: number[] = [];
    const waiting = defineJob<number>({
      name: "work",
      retry: { attempts: 2 },
      run: ({ signal, job: { attempt } }) => {
        attempts.push(attempt);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    await using inbox = newInbox();
    for (let round = 1; round <= 3; round++) {
      attempts = [];
      const consumer = await start(place, { jobs: [waiting], inbox });
      await until(`both have begun, round ${round}`, () => attempts.length === 2);
      await consumer.stop({ timeout: 10 });
      assert.deepEqual(attempts, [1, 1]);
    }
  });

  test("entries that were trimmed away before they were handled are told of", async () => {
    const place = newPlace();
    await publish(place, 3);
    const redis = new Redis(server.url);
    await redis.xgroup("CREATE", place.stream, "g", "0");
    await redis.xreadgroup("GROUP", "g", "dead", "COUNT", 10, "STREAMS", place.stream, ">");
    await redis.xtrim(place.stream, "MAXLEN", 1);
    const errors: unknown[] = [];
    const seen: number[] = [];
    const job = defineJob<number>({ name: "work", run: ({ input }) => void seen.push(input) });
    await using inbox = newInbox();
    const log = { ...silentLogger, error: (facts: unknown) => void errors.push(facts) };
    await using _consumer = await start(place, { jobs: [job], inbox, log });
    await until("the one that is left is handled", () => seen.length === 1);
    assert.equal((errors as { ids: string[] }[])[0]?.ids.length, 2);
    assert.deepEqual(seen, [2]);
    await until("nothing is pending", async () => (await redis.xpending(place.stream, "g"))[0] === 0);
    redis.disconnect();
  });
});
