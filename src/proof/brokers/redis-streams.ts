import type { ReceivedMessage } from "../../message/source.ts";
import { decodeEntry } from "../../transports/redis-streams/entry.ts";
import { redisStreams, redisStreamsSource } from "../../transports/redis-streams/index.ts";
import { type Broker, group } from "./broker.ts";

const page = 1_000;

async function asking<T>(url: string, ask: (client: import("ioredis").Redis) => Promise<T>): Promise<T> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url);
  // Without a listener an error of the connection would end the process; each question tells of it.
  client.on("error", () => {});
  try {
    return await ask(client);
  } finally {
    client.disconnect();
  }
}

export const redisBroker: Broker = {
  async prepare() {},
  route: ({ url, topic, dispatchTimeoutMs }) =>
    redisStreams({ url, stream: topic, dispatchTimeout: dispatchTimeoutMs }),
  source: (url, topic, leaseMs) => redisStreamsSource({ url, stream: topic, group, lease: leaseMs }),
  copies: (url, topic) =>
    asking(url, async (client) => {
      const found: ReceivedMessage[] = [];
      for (let from = "-"; ; ) {
        const entries = await client.xrange(topic, from, "+", "COUNT", page);
        found.push(...entries.map(([, fields]) => decodeEntry(fields)));
        const last = entries.at(-1);
        if (last === undefined || entries.length < page) return found;
        from = `(${last[0]}`;
      }
    }),
  leader: async () => null,
  back: async () => {},
  async forget(url, topic) {
    await asking(url, (client) => client.del(topic));
  },
};
