import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type AnyDefinition, defineJob, type Escapement } from "../../src/index.ts";
import { http } from "../../src/transports/http/index.ts";

const everyMs = 2_000;

export interface Partner {
  readonly jobs: readonly AnyDefinition[];
  /** Tells the partner of an order now and then. Returns what ends it. */
  feed(app: Escapement): () => void;
  close(): void;
}

/** Another company's server, to which orders are published. It refuses every fourth, which is rolled back and sent again. */
export async function startPartner(): Promise<Partner> {
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume();
    asked += 1;
    // It means this order alone: the others need not wait.
    if (asked % 4 === 0) response.writeHead(503, { "escapement-refusal": "job" }).end();
    else response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const publishOrder = defineJob<{ order: number }>({
    name: "publish-order",
    queue: "partners",
    route: http({
      url: `http://127.0.0.1:${port}/orders`,
      secret: `whsec_${randomBytes(32).toString("base64")}`,
      allow: ["127.0.0.1"],
    }),
  });
  let order = 0;
  return {
    jobs: [publishOrder],
    feed(app) {
      const more = (): void => {
        order += 1;
        // A checkout that was clicked twice: the second enqueue finds the id, and there is one job.
        for (const _ of order % 3 === 0 ? [1, 2] : [1])
          void app.enqueue(publishOrder, { order }, { id: `order-${process.pid}-${order}` });
      };
      more();
      const timer = setInterval(more, everyMs);
      return () => clearInterval(timer);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
