import { isTransient } from "../../../errors.ts";
import type { Logger } from "../../../log.ts";
import { type Mode, timedOut, translateError } from "../errors.ts";
import type { RedisClient } from "./client.ts";

export interface LinkParts {
  readonly client: RedisClient;
  /** Whether the store owns the client, and must connect and disconnect it. */
  readonly owned: boolean;
  readonly mode: Mode;
  /** The servers, for messages. */
  readonly where: string;
  readonly callTimeoutMs: number;
  readonly log: Logger;
}

/** For a missing connection. */
interface Wait {
  readonly ready: Promise<void>;
  lastError: unknown;
}

/** The only way to the server: every call has a deadline, every error is one of the library's. */
export class Link {
  readonly where: string;
  readonly mode: Mode;
  readonly client: RedisClient;
  readonly owned: boolean;
  readonly #callTimeoutMs: number;
  #wait: Wait | null = null;

  constructor({ client, owned, mode, where, callTimeoutMs, log }: LinkParts) {
    this.client = client;
    this.owned = owned;
    this.mode = mode;
    this.where = where;
    this.#callTimeoutMs = callTimeoutMs;
    // Without a listener a connection error would crash the process; calls report it soon enough.
    if (owned) client.on("error", (error) => log.debug({ error, where }, "the connection to Redis failed"));
  }

  /** Strings come as buffers. While there is no connection, a call waits for one until its deadline. */
  async call(command: string, args: (string | Buffer | number)[]): Promise<unknown> {
    const deadline = performance.now() + this.#callTimeoutMs;
    if (this.client.status !== "ready") await this.#untilReady(deadline);
    try {
      return await this.#within(deadline, this.client.callBuffer(command, args));
    } catch (error) {
      throw translateError(error, this.where, this.mode);
    }
  }

  /** Connects, or throws why that is not possible. */
  async open(): Promise<void> {
    await this.#untilReady(performance.now() + this.#callTimeoutMs);
  }

  close(): void {
    if (this.owned) this.client.disconnect();
  }

  async #untilReady(deadline: number): Promise<void> {
    if (this.client.status === "ready") return;
    const wait = this.#wait ?? this.#awaitReady();
    try {
      await this.#within(deadline, wait.ready);
    } catch (error) {
      throw translateError(wait.lastError ?? error, this.where, this.mode);
    }
  }

  /** All calls of an outage share one wait: a listener for each would grow with the backlog, and Node would warn of a leak. */
  #awaitReady(): Wait {
    const { client } = this;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const wait: Wait = { ready: promise, lastError: null };
    const end = (): void => {
      client.off("ready", onReady);
      client.off("error", onError);
      this.#wait = null;
    };
    const onReady = (): void => {
      end();
      resolve();
    };
    const onError = (error: unknown): void => {
      wait.lastError = error;
      // Waiting does not fix a wrong password.
      if (isTransient(translateError(error, this.where, this.mode))) return;
      end();
      reject(error);
    };
    // Each call sees the error itself, and one that has given up need not.
    promise.catch(() => {});
    client.on("ready", onReady);
    client.on("error", onError);
    this.#wait = wait;
    // Once asked to connect, it keeps trying on its own.
    if (this.owned && client.status === "wait") client.connect().catch(onError);
    return wait;
  }

  async #within<T>(deadline: number, promise: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(timedOut(this.where, this.#callTimeoutMs)),
      Math.max(0, deadline - performance.now()),
    );
    try {
      return await Promise.race([promise, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
