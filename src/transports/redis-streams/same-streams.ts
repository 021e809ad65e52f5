import type { Connection } from "../../stores/redis/client.ts";
import type { Route } from "../../transport.ts";
import { connectingTo } from "./connecting.ts";
import { streamsOf } from "./stream-name.ts";

export interface StreamsRead {
  readonly stream: string;
  readonly shards: number;
  /** Undefined: what the environment says. */
  readonly url: string | undefined;
}

/** Whether a route writes to a stream that is read, as far as can be told: the names are the same, and a server is named by both. */
export function writesTo({ transport, destination }: Route, read: StreamsRead): boolean {
  if (transport.kind !== "redis-streams") return false;
  const { url, shards } = readAddress(transport.address);
  const written = streamsOf(destination, shards);
  if (!streamsOf(read.stream, read.shards).some((stream) => written.includes(stream))) return false;
  const [theirs, own] = [connectionOf(url), connectionOf(read.url)];
  // Where the environment does not say yet where one of them leads, it will say the same to both.
  return theirs === null || own === null || isSameServer(theirs, own);
}

/** A transport of another make, under the same kind, has an address of its own form: then only the names tell. */
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
