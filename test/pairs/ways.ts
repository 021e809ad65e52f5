import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { consume, type HandlerOptions, httpEndpoint } from "../../src/consumer/index.ts";
import type { ReceivedMessage, Source } from "../../src/message/source.ts";
import type { Route } from "../../src/message/transport.ts";
import { FaultProxy } from "../../src/proof/proxy.ts";
import { http } from "../../src/transports/http/index.ts";
import { secret } from "../../src/transports/http/test/place.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";
import { makeTopic } from "../../src/transports/kafka/test/place.ts";
import { nats, natsSource } from "../../src/transports/nats/index.ts";
import { makeStream, NatsAdmin } from "../../src/transports/nats/test/place.ts";
import { redisStreams, redisStreamsSource } from "../../src/transports/redis-streams/index.ts";
import { testbed } from "../../testbed/index.ts";
import { proxyKafka } from "../../testbed/servers/kafka.ts";

/** A way from a relay to a consumer, through a broker that the relay can be cut off from. */
export interface Way extends AsyncDisposable {
  readonly route: Route;
  /** Runs the handlers until the way is disposed of; `arrived` hears of every message as it came. */
  consume(options: HandlerOptions, arrived: (message: ReceivedMessage) => void): Promise<void>;
  /** From now on nobody listens where the relay publishes to. */
  close(): Promise<void>;
  reopen(): Promise<void>;
}

export interface Broker {
  readonly skip: string | false;
  way(): Promise<Way>;
}

const servers = { redis: await testbed.redis(), nats: await testbed.nats(), kafka: await testbed.kafka() };

/** The road that a relay takes: a proxy that can be taken away and put back where it was. */
class Road {
  readonly #open: (port: number) => Promise<FaultProxy>;
  #proxy: FaultProxy | null = null;
  url = "";

  static async start(open: (port: number) => Promise<FaultProxy>): Promise<Road> {
    const road = new Road(open);
    await road.reopen();
    return road;
  }

  constructor(open: (port: number) => Promise<FaultProxy>) {
    this.#open = open;
  }

  async close(): Promise<void> {
    await this.#proxy?.stop();
    this.#proxy = null;
  }

  async reopen(): Promise<void> {
    this.#proxy = await this.#open(this.url === "" ? 0 : Number(new URL(this.url).port));
    this.url = this.#proxy.url.replace(/\/$/, "");
  }
}

/** The source, telling of each message that it delivers. */
function telling(source: Source, arrived: (message: ReceivedMessage) => void): Source {
  return {
    kind: source.kind,
    async open(context) {
      const session = await source.open(context);
      return {
        extendEveryMs: session.extendEveryMs,
        run: (deliver, signal) =>
          session.run((one) => {
            arrived(one.message);
            return deliver(one);
          }, signal),
        close: () => session.close(),
      };
    },
  };
}

function throughBroker(road: Road, route: Route, from: Source): Way {
  const ends = new AsyncDisposableStack();
  ends.defer(() => road.close());
  return {
    route,
    async consume(options, arrived) {
      const onDead = ({ error }: { error: unknown }): never => {
        throw error;
      };
      const consumer = consume({ ...options, from: telling(from, arrived), onDead });
      ends.use(consumer);
      await consumer.start();
    },
    close: () => road.close(),
    reopen: () => road.reopen(),
    [Symbol.asyncDispose]: () => ends.disposeAsync(),
  };
}

async function overHttp(): Promise<Way> {
  const ends = new AsyncDisposableStack();
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.defer(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const road = await Road.start((port) => FaultProxy.start(target, port));
  ends.defer(() => road.close());
  return {
    route: http({ url: road.url, secret, allow: ["127.0.0.1"], dispatchTimeout: "20s" }),
    async consume(options, arrived) {
      const endpoint = httpEndpoint({ ...options, secret });
      ends.defer(() => endpoint.stop());
      server.on("request", (request, response) => {
        const headers: Record<string, string> = {};
        for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
        arrived({ key: decodeURIComponent(headers["escapement-key"] ?? ""), headers, body: "" });
        endpoint(request, response);
      });
    },
    close: () => road.close(),
    reopen: () => road.reopen(),
    [Symbol.asyncDispose]: () => ends.disposeAsync(),
  };
}

export const brokers = {
  "Redis Streams": {
    skip: servers.redis.skip,
    async way() {
      const { url } = servers.redis;
      const stream = `pair:${randomUUID()}`;
      const road = await Road.start((port) => FaultProxy.start(url, port));
      const route = redisStreams({ stream, url: road.url, dispatchTimeout: "20s" });
      return throughBroker(road, route, redisStreamsSource({ stream, group: "g", url, deleteHandled: true }));
    },
  },
  HTTP: { skip: false, way: overHttp },
  Kafka: {
    skip: servers.kafka.skip,
    async way() {
      const { url } = servers.kafka;
      const topic = `pair-${randomUUID()}`;
      await makeTopic(url, topic);
      // Kafka sends its clients to a port of its own choice, the same each time.
      const road = await Road.start(() => proxyKafka(url));
      const route = kafka({ topic, brokers: road.url, dispatchTimeout: "20s" });
      return throughBroker(road, route, kafkaSource({ topic, group: topic, brokers: url }));
    },
  },
  "NATS JetStream": {
    skip: servers.nats.skip,
    async way() {
      const { url } = servers.nats;
      const subject = `pair-${randomUUID()}`;
      await using admin = new NatsAdmin(url);
      await makeStream(admin, subject);
      const [, login = "", first = ""] = /^nats:\/\/([^@]+)@([^,]+)/.exec(url) ?? [];
      const road = await Road.start((port) => FaultProxy.start(`nats://${login}@${first}`, port));
      const route = nats({ subject, servers: road.url, dispatchTimeout: "20s" });
      return throughBroker(road, route, natsSource({ stream: subject, consumer: "c", servers: url }));
    },
  },
} satisfies Record<string, Broker>;
