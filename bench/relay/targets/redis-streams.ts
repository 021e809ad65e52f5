import { Redis } from "ioredis";
import { encodeEntry } from "../../../src/transports/redis-streams/entry.ts";
import { redisPlace } from "../../../src/transports/redis-streams/test/place.ts";
import { testbed } from "../../../testbed/index.ts";
import { idHeader, type OpenTarget, type RawPublisher } from "./target.ts";

/** A private server of the test bed. */
export const redisStreamsTarget: OpenTarget = async (durability) => {
  const server = await testbed.redis({ private: true });
  if (server.skip !== false) throw new Error(server.skip);
  const place = redisPlace(server.url);
  const admin = new Redis(server.url);
  const fsync = durability === "full" ? "always" : "everysec";
  await admin.config("SET", "appendfsync", fsync);
  return {
    name: "redis-streams",
    async describe() {
      return { broker: `Redis ${server.version} (${server.source}), appendonly=yes appendfsync=${fsync}` };
    },
    async open() {
      const route = await place.route();
      return {
        route,
        openRaw: async () => openRaw(server.url),
        arrived: async () =>
          (await place.arrived(route.destination)).map((one) => one.headers[idHeader] ?? ""),
        async [Symbol.asyncDispose]() {
          await admin.del(route.destination);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await place.close();
      await server.stop();
    },
  };
};

function openRaw(url: string): RawPublisher {
  const client = new Redis(url);
  return {
    async publish(messages) {
      const pipeline = client.pipeline();
      for (const message of messages) pipeline.xadd(message.destination, "*", ...encodeEntry(message));
      for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
    },
    async [Symbol.asyncDispose]() {
      client.disconnect();
    },
  };
}
