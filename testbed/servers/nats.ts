import { join } from "node:path";
import { Daemon } from "../daemon.ts";
import { freePort, isListening } from "../port.ts";
import type { ServerKind, Site } from "../server-kind.ts";

const user = "escapement";
const nodes = 3;

/** Three NATS servers with JetStream (`node-1` to `node-3`); the URL lists them. */
export const nats = {
  name: "nats",
  variable: "ESCAPEMENT_TEST_NATS",
  software: [{ programs: ["nats-server"], packages: [["nats-server"]], image: "nats:2.10" }],
  startsTogether: true,

  async start(site) {
    const ports: number[] = [];
    const routes: number[] = [];
    for (let node = 1; node <= nodes; node++) {
      ports.push(await freePort());
      routes.push(await freePort());
    }
    const hosts = ports.map((port) => `127.0.0.1:${port}`);
    const url = `nats://${user}:${site.password}@${hosts.join(",")}`;
    const daemons = ports.map((port, index) => natsNode(site, { index, port, routes, url }));
    // None of them is ready before there are enough to elect a leader.
    await Promise.all(daemons.map((daemon) => daemon.start()));
    return { url };
  },

  version: async (url) => (await ask(url)).version,
} as const satisfies ServerKind;

function natsNode(
  site: Site,
  node: { readonly index: number; readonly port: number; readonly routes: readonly number[]; url: string },
): Daemon {
  const { tools, folder, password } = site;
  const name = `node-${node.index + 1}`;
  const login = `{ user: "${user}", password: "${password}" }`;
  const config = site.writeFile(
    `${name}.conf`,
    `server_name: "${name}"
listen: "127.0.0.1:${node.port}"
authorization ${login}
jetstream { store_dir: "${site.makeFolder(name)}", max_mem: 64MB, max_file: 8GB }
cluster {
  name: "escapement"
  listen: "127.0.0.1:${node.routes[node.index]}"
  authorization ${login}
  no_advertise: true
  routes: [${node.routes.map((port) => `"nats-route://${user}:${password}@127.0.0.1:${port}"`).join(", ")}]
}
`,
  );
  const daemon = new Daemon({
    name,
    command: () => tools.command("nats-server", ["--config", config], { folder }),
    log: join(folder, `${name}.log`),
    isReady: async () =>
      (await isListening(node.port)) && (await ask(node.url, `127.0.0.1:${node.port}`)).hasLeader,
    stopSignal: "SIGTERM",
  });
  site.daemons.push(daemon);
  return daemon;
}

/** Asked by a real client: a server answers long before the cluster can keep anything. */
async function ask(url: string, only?: string): Promise<{ version: string; hasLeader: boolean }> {
  const [, login = "", hosts = ""] = /^nats:\/\/(?:([^@]*)@)?([^/]+)/.exec(url) ?? [];
  const [name = "", pass = ""] = login.split(":").map(decodeURIComponent);
  const { connect } = await import("@nats-io/transport-node");
  const connection = await connect({
    servers: only === undefined ? hosts.split(",") : [only],
    ...(name === "" ? {} : { user: name, pass }),
    reconnect: false,
    timeout: 2_000,
  });
  try {
    const answer = await connection.request("$JS.API.INFO", "", { timeout: 2_000 }).then(
      (message) => message.json<{ error?: unknown }>(),
      () => ({ error: "no answer" }),
    );
    return { version: connection.info?.version ?? "?", hasLeader: answer.error === undefined };
  } finally {
    await connection.close();
  }
}
