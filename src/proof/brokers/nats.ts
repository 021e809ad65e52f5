import { sleep, systemClock } from "../../clock.ts";
import type { ReceivedMessage } from "../../message/source.ts";
import { type NatsAddress, parseNats } from "../../transports/nats/address.ts";
import { connectOnce, loadJetStream } from "../../transports/nats/connect.ts";
import { nats, natsSource } from "../../transports/nats/index.ts";
import { type Broker, group } from "./broker.ts";

type Client = typeof import("@nats-io/jetstream");
type Manager = import("@nats-io/jetstream").JetStreamManager;
type JetStream = import("@nats-io/jetstream").JetStreamClient;

const page = 1_000;
const waitMs = 3_000;
/** A cluster that has lost its leader needs a while to elect another. */
const patienceMs = 30_000;
const againMs = 250;

async function asking<T>(
  address: NatsAddress,
  ask: (manager: Manager, client: JetStream) => Promise<T>,
): Promise<T> {
  const { jetstream, jetstreamManager }: Client = await loadJetStream();
  const untilMs = systemClock.monotonic() + patienceMs;
  for (;;) {
    try {
      const connection = await connectOnce(address);
      try {
        const manager = await jetstreamManager(connection, { checkAPI: false, timeout: waitMs });
        return await ask(manager, jetstream(connection));
      } finally {
        await connection.close();
      }
    } catch (error) {
      if (systemClock.monotonic() > untilMs) throw error;
      await sleep(systemClock, againMs);
    }
  }
}

export const natsBroker: Broker = {
  prepare: (url, topic) =>
    asking(parseNats(url), async (manager) => {
      const replicas = parseNats(url).servers.length >= 3 ? 3 : 1;
      await manager.streams.add({ name: topic, subjects: [topic], num_replicas: replicas });
    }),
  route: ({ url, topic, dispatchTimeoutMs }) =>
    nats({ servers: url, subject: topic, dispatchTimeout: dispatchTimeoutMs }),
  source: (url, topic, leaseMs) =>
    natsSource({ servers: url, stream: topic, consumer: group, ackWait: leaseMs }),
  copies: (url, topic) =>
    asking(parseNats(url), async (manager, client) => {
      const { state } = await manager.streams.info(topic);
      const found: ReceivedMessage[] = [];
      const consumer = await client.consumers.get(topic);
      while (found.length < state.messages) {
        for await (const message of await consumer.fetch({ max_messages: page, expires: waitMs })) {
          const headers: Record<string, string> = {};
          for (const [name, [value = ""]] of message.headers ?? []) headers[name.toLowerCase()] = value;
          found.push({ key: "", headers, body: message.string() });
          if (message.info.pending === 0) break;
        }
      }
      return found;
    }),
  leader: (url, topic) =>
    asking(parseNats(url), async (manager) => (await manager.streams.info(topic)).cluster?.leader ?? null),
  async back(url, topic) {
    const { servers, ...login } = parseNats(url);
    for (const server of servers) {
      await asking({ ...login, servers: [server] }, async (manager) => {
        const { cluster } = await manager.streams.info(topic);
        // A server by itself leads whatever it answers for.
        if (cluster !== undefined && cluster.leader === undefined) throw new Error(`${topic} has no leader`);
      });
    }
  },
  async forget(url, topic) {
    await asking(parseNats(url), (manager) => manager.streams.delete(topic));
  },
};
