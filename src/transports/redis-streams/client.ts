import type { Logger } from "../../log.ts";
import type { Connection } from "../../stores/redis/connection/client.ts";
import { newClient } from "../../stores/redis/connection/connect.ts";

/** What streams need from a client: an `ioredis` Redis or Cluster fits. */
export interface StreamClient {
  readonly status: string;
  connect(): Promise<void>;
  /** @param reconnect whether it reconnects by itself. */
  disconnect(reconnect?: boolean): void;
  call(command: string, args: readonly (string | Buffer | number)[]): Promise<unknown>;
  pipeline(): StreamPipeline;
  on(event: string, listener: (...values: unknown[]) => void): unknown;
  off(event: string, listener: (...values: unknown[]) => void): unknown;
}

export interface StreamPipeline {
  call(command: string, args: readonly (string | Buffer | number)[]): unknown;
  exec(): Promise<[error: Error | null, result: unknown][] | null>;
}

export interface Connecting {
  readonly connection: Connection;
  /** The servers, for messages. */
  readonly where: string;
}

export const connectTimeoutMs = 10_000;

/** A client that is not connected yet and never resends. */
export async function newStreamClient({ connection, where }: Connecting, log: Logger): Promise<StreamClient> {
  const client = (await newClient(connection, connectTimeoutMs, "transport")) as unknown as StreamClient;
  // Without a listener a connection error would crash the process; each publish reports it.
  client.on("error", (error) => log.debug({ error, where }, "the connection to Redis failed"));
  return client;
}

const waiting = new WeakMap<StreamClient, Promise<Error | null>>();

/** Null once it is connected; otherwise the error of the first failed attempt. All callers that wait for a client share one wait. */
export function untilReady(client: StreamClient): Promise<Error | null> {
  if (client.status === "ready") return Promise.resolve(null);
  const wait = waiting.get(client) ?? waitFor(client).finally(() => waiting.delete(client));
  waiting.set(client, wait);
  return wait;
}

function waitFor(client: StreamClient): Promise<Error | null> {
  return new Promise((resolve) => {
    const end = (answer: Error | null): void => {
      client.off("ready", onReady);
      client.off("error", onError);
      client.off("end", onEnd);
      resolve(answer);
    };
    const onReady = (): void => end(null);
    const onError = (error: unknown): void => end(error instanceof Error ? error : new Error(String(error)));
    const onEnd = (): void => end(new Error("the connection was closed"));
    client.on("ready", onReady);
    client.on("error", onError);
    client.on("end", onEnd);
    // Once asked to connect, it keeps trying by itself.
    if (client.status === "wait" || client.status === "end") client.connect().catch(onError);
  });
}
