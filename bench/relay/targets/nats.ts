import { jetstream } from "@nats-io/jetstream";
import { headers as newHeaders } from "@nats-io/transport-node";
import { parseNats } from "../../../src/transports/nats/address.ts";
import { connectOnce } from "../../../src/transports/nats/connect.ts";
import { natsPlace } from "../../../src/transports/nats/test/place.ts";
import { testbed } from "../../../testbed/index.ts";
import { idHeader, type OpenTarget, type RawPublisher } from "./target.ts";

/** Three nodes of the test bed, streams of three copies. JetStream syncs to disk every two minutes, in either durability. */
export const natsTarget: OpenTarget = async () => {
  const server = await testbed.nats();
  if (server.skip !== false) throw new Error(server.skip);
  const place = natsPlace(server.url);
  return {
    name: "nats",
    async describe() {
      return {
        broker: `NATS ${server.version} (${server.source}), three nodes and copies, no sync to disk with each message`,
      };
    },
    async open() {
      const route = await place.route();
      return {
        route,
        openRaw: () => openRaw(server.url),
        arrived: async () =>
          (await place.arrived(route.destination)).map((one) => one.headers[idHeader] ?? ""),
        async [Symbol.asyncDispose]() {},
      };
    },
    [Symbol.asyncDispose]: () => place.close(),
  };
};

async function openRaw(url: string): Promise<RawPublisher> {
  const connection = await connectOnce(parseNats(url));
  const client = jetstream(connection);
  return {
    async publish(messages) {
      await Promise.all(
        messages.map(({ destination, body, dedupeId, headers }) => {
          const all = newHeaders();
          for (const [name, value] of Object.entries(headers)) all.set(name, value);
          return client.publish(destination, body, { msgID: dedupeId, headers: all, timeout: 30_000 });
        }),
      );
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}
