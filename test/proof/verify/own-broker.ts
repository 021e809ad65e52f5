import type { BrokerOptions } from "../../../src/proof/relay/stage.ts";
import { testbed } from "../../../testbed/index.ts";
import { proxyKafka } from "../../../testbed/servers/kafka.ts";

export interface OwnBroker extends AsyncDisposable {
  /** False, or why it cannot be had. */
  readonly skip: false | string;
  /** Only where it can be had. */
  readonly broker: BrokerOptions;
}

/** A broker that was started for one run alone: all of it may be restarted and killed, or the part that leads. */
export async function openBroker(name: "redis" | "nats" | "kafka" | "http"): Promise<OwnBroker> {
  const receiver = { broker: { url: "http" }, async [Symbol.asyncDispose]() {} };
  if (name === "http") return { ...receiver, skip: false };
  const server = await testbed[name]({ private: true });
  if (server.skip !== false) return { ...receiver, skip: server.skip };
  return {
    skip: false,
    broker: {
      url: server.url,
      ...(name === "kafka" ? { proxy: () => proxyKafka(server.url) } : {}),
      async restart(abruptly, leader) {
        if (abruptly) await server.kill(leader ?? undefined);
        await server.restart(leader ?? undefined);
      },
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
