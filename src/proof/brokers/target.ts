import { EscapementError } from "../../errors.ts";
import type { Broker } from "./broker.ts";

export type BrokerKind = "redis-streams" | "nats" | "kafka" | "http";

const kinds: Readonly<Record<string, { readonly kind: BrokerKind; readonly proxied: boolean }>> = {
  redis: { kind: "redis-streams", proxied: true },
  nats: { kind: "nats", proxied: true },
  // Its clients go where the brokers say that they are, past any proxy that they do not know of.
  kafka: { kind: "kafka", proxied: false },
  "kafka+ssl": { kind: "kafka", proxied: false },
};

/** Where the jobs of a run are published. */
export interface BrokerTarget {
  readonly kind: BrokerKind;
  /** Empty for HTTP: the receiver is the run's own. */
  readonly url: string;
  /** Whether a proxy can stand in front of it. */
  readonly proxied: boolean;
}

/** @param text a URL, or `http` for a receiver that is started for the run. */
export function brokerTarget(text: string): BrokerTarget {
  if (text === "http") return { kind: "http", url: "", proxied: true };
  const scheme = /^([a-z+]+):/.exec(text)?.[1] ?? "";
  const found = Object.hasOwn(kinds, scheme) ? kinds[scheme] : undefined;
  if (found !== undefined) return { ...found, url: text };
  throw new EscapementError(
    "invalid-option",
    `expected a broker to publish to (redis:, nats:, kafka:, or http for its own receiver), got ${JSON.stringify(`${scheme}:…`)}`,
  );
}

/** The hosts of a URL that may list several, each with its port. */
export function hostsOf(url: string, port: number): { readonly login: string; readonly hosts: string[] } {
  const [, login = "", hosts = ""] = /^[a-z+]+:\/\/(?:([^@/]*)@)?([^/?]+)/.exec(url) ?? [];
  return {
    login: login === "" ? "" : `${login}@`,
    hosts: hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:${port}`)),
  };
}

/** Each is loaded only when it is asked for. HTTP keeps nothing: it is answered by the run's own receiver. */
export async function loadBroker(kind: Exclude<BrokerKind, "http">): Promise<Broker> {
  switch (kind) {
    case "redis-streams":
      return (await import("./redis-streams.ts")).redisBroker;
    case "nats":
      return (await import("./nats.ts")).natsBroker;
    case "kafka":
      return (await import("./kafka.ts")).kafkaBroker;
  }
}
