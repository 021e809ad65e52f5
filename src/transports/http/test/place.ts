import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FaultProxy } from "../../../proof/proxy.ts";
import type { Arrived, FragilePlace } from "../../../testing/transports/harness.ts";
import { type HttpOptions, http } from "../route.ts";
import { verifyWebhook } from "../signature.ts";

export const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";

/** A receiver on loopback that checks signatures and remembers what it got, by path. */
export class Receiver {
  readonly #got = new Map<string, Arrived[]>();
  readonly #maxBytes = 1_000_000;
  #server: Server | null = null;
  port = 0;

  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#receive(request, response));
    server.listen(this.port, "127.0.0.1");
    await once(server, "listening");
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  }

  got(path: string): readonly Arrived[] {
    return this.#got.get(path) ?? [];
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    if (body.length > this.#maxBytes) return void response.writeHead(413).end();
    verifyWebhook({ headers, body, secret });
    const path = request.url ?? "";
    const all = this.#got.get(path) ?? [];
    all.push({ key: decodeURIComponent(headers["escapement-key"] ?? ""), headers, body });
    this.#got.set(path, all);
    response.writeHead(204).end();
  }
}

export async function httpPlace(options: Partial<HttpOptions> = {}): Promise<FragilePlace> {
  const receiver = new Receiver();
  await receiver.start();
  const target = `http://127.0.0.1:${receiver.port}`;
  let way = await FaultProxy.start(target);
  const { port, href } = new URL(way.url);
  let routes = 0;
  return {
    get way() {
      return way;
    },
    tooLarge: JSON.stringify("x".repeat(1_000_000)),
    dedupes: false,
    route: async () => http({ url: `${href}route-${++routes}`, secret, allow: ["127.0.0.1"], ...options }),
    missing: () => null,
    arrived: async (url) => receiver.got(new URL(url).pathname),
    // A proxy that is alone accepts what it cannot pass on, which is no refusal.
    async stop() {
      await receiver.stop();
      await way.stop();
    },
    async start() {
      await receiver.start();
      way = await FaultProxy.start(target, Number(port));
    },
    async close() {
      await receiver.stop();
      await way.stop();
    },
  };
}
