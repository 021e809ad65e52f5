import { isTransient } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { RedisClient } from "./client.ts";
import { type Mode, timedOut, translateError } from "./errors.ts";

export interface LinkParts {
  readonly client: RedisClient;
  /** Whether the client is this store's own, to be connected and disconnected by it. */
  readonly owned: boolean;
  readonly mode: Mode;
  /** The servers, for messages. */
  readonly where: string;
  readonly callTimeoutMs: number;
  readonly log: Logger;
}

/** The one way to the server: every call has a deadline, every error is one of the library's. */
export class Link {
  readonly where: string;
  readonly mode: Mode;
  readonly client: RedisClient;
  readonly owned: boolean;
  readonly #callTimeoutMs: number;

  constructor({ client, owned, mode, where, callTimeoutMs, log }: LinkParts) {
    this.client = client;
    this.owned = owned;
    this.mode = mode;
    this.where = where;
    this.#callTimeoutMs = callTimeoutMs;
    // Without a listener an error of the connection would end the process; calls tell of it soon enough.
    if (owned) client.on("error", (error) => log.debug({ error, where }, "the connection to Redis failed"));
  }

  /** Texts come as buffers. While there is no connection, a call waits for one until its deadline. */
  async call(command: string, args: (string | Buffer | number)[]): Promise<unknown> {
    const deadline = performance.now() + this.#callTimeoutMs;
    if (this.client.status !== "ready") await this.#untilReady(deadline);
    try {
      return await this.#within(deadline, this.client.callBuffer(command, args));
    } catch (error) {
      throw translateError(error, this.where, this.mode);
    }
  }

  /** Connects, or says why that is not possible. */
  async open(): Promise<void> {
    await this.#untilReady(performance.now() + this.#callTimeoutMs);
  }

  close(): void {
    if (this.owned) this.client.disconnect();
  }

  async #untilReady(deadline: number): Promise<void> {
    const { client } = this;
    if (client.status === "ready") return;
    let lastError: unknown = null;
    const ready = Promise.withResolvers<void>();
    const onReady = (): void => ready.resolve();
    const onError = (error: unknown): void => {
      lastError = error;
      // A wrong password does not become right by waiting.
      if (!isTransient(translateError(error, this.where, this.mode))) ready.reject(error);
    };
    client.on("ready", onReady);
    client.on("error", onError);
    try {
      // It goes on trying by itself once it was told to connect.
      if (this.owned && client.status === "wait") client.connect().catch(onError);
      await this.#within(deadline, ready.promise);
    } catch (error) {
      throw translateError(lastError ?? error, this.where, this.mode);
    } finally {
      client.off("ready", onReady);
      client.off("error", onError);
    }
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
