import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Instruments } from "./instruments.ts";

/** Answers `GET /metrics` and nothing else. */
export class MetricsListener {
  readonly #server: Server;

  constructor(metrics: Instruments) {
    this.#server = createServer((request, response) => {
      if (request.method !== "GET" || request.url?.split("?")[0] !== "/metrics") {
        response.writeHead(404).end();
        return;
      }
      metrics.text().then(
        (text) => response.writeHead(200, { "content-type": metrics.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
  }

  /** Resolves with the port, which the system chose if it was 0. */
  start(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
