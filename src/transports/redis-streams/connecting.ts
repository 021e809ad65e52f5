import { EscapementError } from "../../errors.ts";
import { resolveOptions as resolveRedis, whereOf } from "../../stores/redis/connection/options.ts";
import { type Connecting, connectTimeoutMs } from "./client.ts";

/** Read as late as possible: a process that only enqueues needs no broker. */
export function redisUrl(given: string | undefined): string | undefined {
  return given === undefined ? process.env["ESCAPEMENT_REDIS"] || undefined : given;
}

/** Given values are checked at once; the environment is read when it is needed. */
export function checkUrl(options: { readonly url?: string }): void {
  if (options.url !== undefined) connectingTo(options.url);
}

export function connectingTo(given: string | undefined): Connecting {
  const url = redisUrl(given);
  if (url === undefined) {
    throw new EscapementError(
      "invalid-option",
      "redisStreams does not know where Redis is; give it url, or set ESCAPEMENT_REDIS",
    );
  }
  const { connection } = resolveRedis({ url, callTimeout: connectTimeoutMs });
  return { connection, where: whereOf(connection) };
}
