import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { EscapementError } from "../errors.ts";
import type { Probe } from "../telemetry/probe.ts";
import type { Prometheus } from "./prometheus.ts";

/** What orchestrators ask. */
export interface ProbeAnswers {
  liveness(): Probe | Promise<Probe>;
  readiness(): Probe | Promise<Probe>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

type Route = () => Promise<Answer>;

/** Answers `GET /metrics` and, where there are probes, `/healthz` and `/readyz`; nothing else. */
export class MetricsListener {
  readonly #server: Server;

  constructor(metrics: Prometheus, probes: ProbeAnswers | null) {
    const routes: Readonly<Record<string, Route>> = {
      "/metrics": async () => ({ status: 200, type: metrics.contentType, text: await metrics.text() }),
      ...(probes === null
        ? {}
        : {
            "/healthz": async () => asAnswer(await probes.liveness()),
            "/readyz": async () => asAnswer(await probes.readiness()),
          }),
    };
    this.#server = createServer((request, response) => {
      const path = request.url?.split("?")[0] ?? "";
      const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
      if (request.method !== "GET" || route === undefined) {
        response.writeHead(404).end();
        return;
      }
      route().then(
        ({ status, type, text }) => response.writeHead(status, { "content-type": type }).end(text),
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

function asAnswer(probe: Probe): Answer {
  return { status: probe.ok ? 200 : 503, type: "application/json", text: `${JSON.stringify(probe)}\n` };
}

function asPortError(error: NodeJS.ErrnoException, port: number, host: string): EscapementError {
  const why =
    error.code === "EADDRINUSE" ? "another process, or another app of this one, uses it" : error.message;
  return new EscapementError(
    "metrics-unavailable",
    `metrics cannot be served at ${host}:${port}: ${why}; choose another metrics.port (0: any free one)`,
    { cause: error },
  );
}
