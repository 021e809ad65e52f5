import type { Logger } from "../../../log.ts";
import { reconnectDelayMs } from "../../../runtime/transient.ts";
import type { PgClient, PgNotification } from "./client.ts";
import { quote } from "./encode.ts";
import type { Link } from "./link.ts";

/** How often a quiet connection is checked: a dead one gives no sign. */
const pulseMs = 15_000;

export interface ListenerOptions {
  readonly link: Link;
  readonly log: Logger;
  readonly channel: string;
  readonly hear: (payload: string) => void;
  /** Listening again after a gap. */
  readonly missed: () => void;
}

/** Receives the server's notices on a dedicated connection, and reconnects for as long as it is wanted. */
export class Listener {
  readonly #options: ListenerOptions;
  #client: PgClient | null = null;
  #wanted = false;
  #failures = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Connecting or connected. */
  #attempt: Promise<void> | null = null;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Resolves when it listens, or when the first attempt has failed and the next is planned. */
  async start(): Promise<void> {
    this.#wanted = true;
    this.#attempt ??= this.#connect();
    await this.#attempt;
  }

  async stop(): Promise<void> {
    this.#wanted = false;
    await this.#attempt;
    // If a caller wanted it again in the meantime, it stays.
    if (this.#wanted) return;
    this.#drop();
    this.#attempt = null;
    this.#failures = 0;
  }

  async #connect(): Promise<void> {
    const { link, channel, log } = this.#options;
    try {
      const client = await link.connect();
      this.#client = client;
      client.on("notification", this.#onNotification);
      client.on("error", this.#onError);
      await link.within(client.query(`listen ${quote(channel)}`), "listening");
      if (this.#failures > 0) this.#options.missed();
      this.#failures = 0;
      this.#plan(pulseMs, () => void this.#pulse(client));
    } catch (error) {
      if (this.#failures === 0 && this.#wanted) {
        log.warn({ error }, "the Postgres store cannot listen for notices right now; it polls and retries");
      }
      this.#retry();
    }
  }

  async #pulse(client: PgClient): Promise<void> {
    try {
      await this.#options.link.within(client.query("select 1"), "a sign of life");
      if (this.#client === client) this.#plan(pulseMs, () => void this.#pulse(client));
    } catch {
      if (this.#client === client) this.#retry();
    }
  }

  #retry(): void {
    this.#drop();
    this.#failures += 1;
    if (!this.#wanted) return;
    this.#plan(reconnectDelayMs(this.#failures, Math.random()), () => {
      this.#attempt = this.#connect();
    });
  }

  #drop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    client.removeListener("notification", this.#onNotification);
    client.removeListener("error", this.#onError);
    this.#options.link.release(client, true);
  }

  #plan(ms: number, callback: () => void): void {
    this.#timer = setTimeout(callback, ms);
    this.#timer.unref();
  }

  readonly #onNotification = ({ channel, payload }: PgNotification): void => {
    if (channel === this.#options.channel && payload !== undefined) this.#options.hear(payload);
  };

  readonly #onError = (): void => {
    if (this.#client !== null) this.#retry();
  };
}
