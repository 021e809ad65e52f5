import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type Handling, ProxiedConnection } from "./proxied-connection.ts";

const longestFaultMs = 10 * 60_000;

type Fault = "pass" | "cut" | "blackHole" | "dropReplies";

const faults: Readonly<Record<Fault, readonly [requests: Handling, replies: Handling]>> = {
  pass: ["forward", "forward"],
  cut: ["hold", "hold"],
  blackHole: ["hold", "hold"],
  dropReplies: ["forward", "swallow"],
};

/**
 * A TCP proxy on a loopback port that fails on demand. Every fault but the latency ends by itself, and a new one
 * replaces the one that lasts.
 *
 * @example
 * const proxy = await FaultProxy.start(server.url);
 * proxy.blackHole(30_000);
 */
export class FaultProxy {
  readonly #target: URL;
  readonly #listener: Server;
  readonly #connections = new Set<ProxiedConnection>();
  #fault: Fault = "pass";
  #latencyMs = 0;
  #end: NodeJS.Timeout | undefined;

  /** @param port where it listens; any free one unless the target's clients are told of a certain one. */
  static async start(targetUrl: string, port = 0): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetUrl);
    proxy.#listener.listen(port, "127.0.0.1");
    await once(proxy.#listener, "listening");
    return proxy;
  }

  constructor(targetUrl: string) {
    this.#target = new URL(targetUrl);
    assert(
      this.#target.port,
      `expected a URL with a port, got ${this.#target.protocol}//${this.#target.host}`,
    );
    this.#listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) =>
      this.#accept(client),
    );
  }

  /** The URL of the target, through the proxy. */
  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
    return url.href;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Ends whatever fault there is, the latency included. */
  pass(): void {
    this.#latencyMs = 0;
    this.#enter("pass", 0);
  }

  /** Makes each byte take this much longer, in both directions, until `pass` or another latency. */
  delay(latencyMs: number): void {
    this.#latencyMs = bounded(latencyMs);
  }

  /** Resets all connections, and for a time each new one as well. */
  cut(forMs = 0): void {
    this.#enter("cut", forMs);
    for (const connection of this.#connections) connection.reset();
  }

  /**
   * Accepts and forwards nothing. What was sent meanwhile arrives afterwards, as TCP repeats it when a network is mended;
   * nobody hears of a peer that has gone.
   */
  blackHole(forMs: number): void {
    this.#enter("blackHole", forMs);
  }

  /** Forwards requests and loses the answers. A connection that has lost one is reset afterwards. */
  dropReplies(forMs: number): void {
    this.#enter("dropReplies", forMs);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#end);
    const closed = once(this.#listener, "close");
    this.#listener.close();
    for (const connection of this.#connections) connection.reset();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #enter(fault: Fault, forMs: number): void {
    clearTimeout(this.#end);
    this.#fault = bounded(forMs) > 0 ? fault : "pass";
    if (forMs > 0) this.#end = setTimeout(() => this.#enter("pass", 0), forMs);
    for (const connection of this.#connections) {
      if (connection.hasLostBytes && this.#fault !== "dropReplies") connection.reset();
      else connection.handle(...faults[this.#fault]);
    }
  }

  #accept(client: Socket): void {
    if (this.#fault === "cut") {
      client.resetAndDestroy();
      return;
    }
    const server = connect({
      host: this.#target.hostname,
      port: Number(this.#target.port),
      allowHalfOpen: true,
    });
    const connection = new ProxiedConnection(client, server, () => this.#latencyMs);
    this.#connections.add(connection);
    let open = 2;
    for (const socket of [client, server]) {
      socket.once("close", () => {
        if (--open === 0) this.#connections.delete(connection);
      });
    }
    connection.handle(...faults[this.#fault]);
  }
}

function bounded(ms: number): number {
  assert(ms >= 0 && ms <= longestFaultMs, `expected a time from 0 to ${longestFaultMs} ms, got ${ms}`);
  return ms;
}
