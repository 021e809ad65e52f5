import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { furnish } from "../../examples/demo/feed.ts";
import { jobs } from "../../examples/demo/jobs.ts";
import { planTheDay, simulateYesterday } from "../../examples/demo/yesterday.ts";
import { type ApiOptions, toNodeListener } from "../../src/api/index.ts";
import { createDashboard } from "../../src/dashboard/index.ts";
import { createEscapement, type Escapement } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { scratchFolder } from "../scratch.ts";

/** An app's dashboard on a port of this machine. */
export interface Stage {
  readonly app: Escapement;
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(app: Escapement, options: ApiOptions = { insecure: true }): Promise<Stage> {
  const dashboard = createDashboard(app, options);
  const server = createServer(toNodeListener(dashboard));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    dashboard.close();
    server.closeAllConnections();
    server.close();
    await app.stop();
  };
  return { app, url: `http://127.0.0.1:${port}${options.basePath ?? ""}/`, close };
}

/** The demo after its simulated day, with everything set up and nobody at work: what is done to a job stays done. */
export async function serveDemo(options?: ApiOptions): Promise<Stage> {
  const file = join(scratchFolder("dashboard"), "demo.db");
  await simulateYesterday(file);
  const app = createEscapement({ store: `sqlite:${file}`, jobs, log: silentLogger });
  await planTheDay(app);
  const stopFeeding = await furnish(app);
  stopFeeding();
  return serve(app, options);
}
