import type { Logger } from "../../log.ts";
import type { Notice } from "../../store/notices.ts";
import { Listeners } from "../listeners.ts";
import { anyNotice, isNotice } from "../notice.ts";
import type { RedisClient } from "./connection/client.ts";
import type { Link } from "./connection/link.ts";
import { timedOut, translateError } from "./errors.ts";

export interface ChannelParts {
  readonly link: Link;
  readonly channels: readonly string[];
  readonly callTimeoutMs: number;
  readonly log: Logger;
  /** A separate client: one that listens can do nothing else. */
  newClient(): Promise<RedisClient>;
}

/** Receives what scripts publish, on a connection that is opened with the first listener and survives reconnects. */
export class Channel {
  readonly #parts: ChannelParts;
  readonly #listeners: Listeners;
  #listening: Promise<RedisClient> | null = null;
  #client: RedisClient | null = null;
  #closed = false;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#listeners = new Listeners(parts.log);
  }

  async subscribe(listener: (notice: Notice) => void): Promise<() => void> {
    this.#listening ??= this.#listen();
    try {
      await this.#listening;
    } catch (error) {
      this.#listening = null;
      throw error;
    }
    return this.#listeners.add(listener);
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    this.#client?.disconnect();
    this.#listening?.then((client) => client.disconnect()).catch(() => undefined);
  }

  async #listen(): Promise<RedisClient> {
    const { link, channels, callTimeoutMs, log } = this.#parts;
    const client = await this.#parts.newClient();
    this.#client = client;
    client.on("error", (error) =>
      log.debug({ error, where: link.where }, "the connection that listens to Redis failed"),
    );
    const timer = setTimeout(() => client.disconnect(), callTimeoutMs);
    try {
      if (client.status === "wait") await client.connect();
      await client.subscribe(...channels);
    } catch (error) {
      client.disconnect();
      throw translateError(
        this.#closed ? error : (error ?? timedOut(link.where, callTimeoutMs)),
        link.where,
        link.mode,
      );
    } finally {
      clearTimeout(timer);
    }
    client.on("message", (_channel, message) => this.#hear(String(message)));
    client.on("ready", () => this.#resume(client));
    return client;
  }

  /** The client's own resubscribe crashes the process when the connection breaks during it. */
  #resume(client: RedisClient): void {
    const { channels, link, log } = this.#parts;
    client.subscribe(...channels).then(
      // After a gap it is unknown what was missed, so everything may have changed.
      () => this.#listeners.notify(anyNotice),
      // If the connection broke again, it will be ready again some time; all listeners poll in the meantime.
      (error: unknown) => log.debug({ error, where: link.where }, "listening to Redis could not be resumed"),
    );
  }

  #hear(message: string): void {
    try {
      const [json = "", ...ended] = message.split("\n");
      const notices: unknown = JSON.parse(json);
      if (Array.isArray(notices)) this.#listeners.notify(notices.filter(isNotice));
      if (ended.length > 0) this.#listeners.notify([{ kind: "ended", ids: ended }]);
    } catch (error) {
      this.#parts.log.warn({ error }, "a notice of the Redis store could not be read");
    }
  }
}
