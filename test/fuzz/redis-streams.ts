import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import type { RawMessage } from "./broken-messages.ts";
import { type OpenTarget, startConsumer } from "./target.ts";

/** Redis takes whatever it is given, in pairs. */
function fieldsOf({ headers, key, body }: RawMessage): Buffer[] {
  const fields = headers.flatMap(([name, value]) => [name, value ?? Buffer.alloc(0)]);
  if (key !== null) fields.push(Buffer.from("key"), key);
  if (body !== null || fields.length === 0) fields.push(Buffer.from("body"), body ?? Buffer.alloc(0));
  return fields;
}

export const redisStreamsTarget: OpenTarget = {
  skip: async () => (await testbed.redis()).skip,
  async open(handlers) {
    const { url } = await testbed.redis();
    const [stream, dead] = [`fuzz-${randomUUID()}`, `fuzz-dead-${randomUUID()}`];
    const redis = new Redis(url);
    const from = redisStreamsSource({ stream, group: "fuzz", url });
    // Smaller than what is read, so that some dead letters do not fit.
    const letters = redisStreams({ stream: dead, url, maxMessageBytes: 500_000 });
    const { consumer, ...running } = await startConsumer(handlers, from, letters);
    return {
      ...running,
      async publish(messages) {
        const pipeline = redis.pipeline();
        for (const message of messages) pipeline.call("XADD", stream, "*", ...fieldsOf(message));
        const answers = (await pipeline.exec()) ?? [];
        return answers.filter(([error]) => error === null).length;
      },
      async [Symbol.asyncDispose]() {
        await consumer.stop();
        await redis.del(stream, dead);
        redis.disconnect();
      },
    };
  },
};
