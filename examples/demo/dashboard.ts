import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeListener } from "../../src/api/index.ts";
import { createDashboard } from "../../src/dashboard/index.ts";
import type { Escapement } from "../../src/index.ts";
import { simulated } from "./yesterday.ts";

const usualPort = 3_811;

/** For every screen: jobs can be told by their tag, but figures, charts and the ledger hold both. */
const notice = `This is the demo. The day before its first start was simulated: in charts, figures and the ledger, too. Jobs of that day have the tag “${simulated}”.`;

/** Serves the dashboard to this machine, at a free port when the usual one is taken. */
export async function serveDashboard(app: Escapement): Promise<{ readonly url: string; close(): void }> {
  // Without tokens it answers loopback only, as admin. In your app, give it `tokens` or `authorize`.
  const dashboard = createDashboard(app, { insecure: true, redact: ["card"], notice });
  const server = createServer(toNodeListener(dashboard));
  await listen(server, usualPort).catch(() => listen(server, 0));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    dashboard.close();
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}/`, close };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}
