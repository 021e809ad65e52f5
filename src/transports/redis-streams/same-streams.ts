import type { Route } from "../../message/transport.ts";
import type { Connection } from "../../stores/redis/connection/client.ts";
import { connectingTo } from "./connecting.ts";
import { streamsOf } from "./stream-name.ts";

export interface StreamsRead {
  readonly stream: string;
  readonly shards: number;
  /** Undefined: what the environment says. */
  readonly url: string | undefined;
}

/** Whether a route writes to a stream that is read, as far as can be known: the names are the same, and both name one server. */
export function writesTo({ transport, destination }: Route, read: StreamsRead): boolean {
  if (transport.kind !== "redis-streams") return false;
  const { url, shards } = readAddress(transport.address);
  const written = streamsOf(destination, shards);
  if (!streamsOf(read.stream, read.shards).some((stream) => written.includes(stream))) return false;
  const [theirs, own] = [connectionOf(url), connectionOf(read.url)];
  // If the environment does not say yet where one of them leads, it will say the same for both.
  return theirs === null || own === null || isSameServer(theirs, own);
}

/** A third-party transport of the same kind has its own form of address: then only the names are compared. */
function readAddress(address: string): { readonly url: string | undefined; readonly shards: number } {
  try {
    const [url, { shards }]: [string | null, { readonly shards: number }] = JSON.parse(address);
    return { url: url ?? undefined, shards };
  } catch {
    return { url: undefined, shards: 1 };
  }
}

function connectionOf(url: string | undefined): Connection | null {
  try {
    return connectingTo(url).connection;
  } catch {
    return null;
  }
}

function isSameServer(one: Connection, other: Connection): boolean {
  const sharesNode = one.nodes.some(({ host, port }) =>
    other.nodes.some((node) => node.host.toLowerCase() === host.toLowerCase() && node.port === port),
  );
  return sharesNode && one.db === other.db && one.primary === other.primary;
}
