import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { EscapementError } from "../errors.ts";
import type { Prometheus } from "./prometheus.ts";

/** Answers `GET /metrics` and nothing else. */
export class MetricsListener {
  readonly #server: Server;

  constructor(metrics: Prometheus) {
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
      const failed = (error: NodeJS.ErrnoException): void => reject(asPortError(error, port, host));
      this.#server.once("error", failed);
      this.#server.listen(port, host, () => {
        this.#server.off("error", failed);
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

function asPortError(error: NodeJS.ErrnoException, port: number, host: string): EscapementError {
  const why =
    error.code === "EADDRINUSE" ? "another process, or another app of this one, uses it" : error.message;
  return new EscapementError(
    "metrics-unavailable",
    `metrics cannot be shown at ${host}:${port}: ${why}; give another metrics.port (0: any free one)`,
    { cause: error },
  );
}
