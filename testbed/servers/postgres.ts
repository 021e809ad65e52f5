import { join } from "node:path";
import { run } from "../command.ts";
import { Daemon } from "../daemon.ts";
import { freePort, isListening } from "../port.ts";
import type { ServerKind, Site } from "../server-kind.ts";
import type { Toolbox } from "../software.ts";

export const postgresFolders = ["/usr/lib/postgresql/*/bin"];
const user = "escapement";

/** Postgres with its defaults: what it says is committed is on disk. */
export const postgres = {
  name: "postgres",
  variable: "ESCAPEMENT_TEST_POSTGRES",
  software: [
    {
      programs: ["postgres", "initdb", "psql"],
      folders: postgresFolders,
      packages: [["postgresql"]],
      image: "postgres:17",
    },
  ],
  client: {
    programs: ["psql"],
    folders: postgresFolders,
    packages: [["postgresql-client"]],
    image: "postgres:17",
  },

  async start(site) {
    const { tools, folder, password } = site;
    const port = await freePort();
    await createCluster(site);
    const url = `postgres://${user}:${password}@127.0.0.1:${port}/postgres`;
    const settings = {
      listen_addresses: "127.0.0.1",
      port,
      unix_socket_directories: "",
      // Many test files share it, each with its own pools.
      max_connections: 300,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const daemon = new Daemon({
      name: "postgres",
      command: () => tools.command("postgres", ["-D", join(folder, "data"), ...args], { folder }),
      log: join(folder, "log"),
      isReady: async () => (await isListening(port)) && (await query(tools, url, "select 1")) === "1",
      stopSignal: "SIGINT",
      // Not SIGKILL: its processes would outlive it for a moment, and write to a folder that is being removed.
      discardSignal: "SIGQUIT",
    });
    site.daemons.push(daemon);
    await daemon.start();
    return { url };
  },

  version: async (url, tools) => /^\S+/.exec(await query(tools, url, "show server_version"))?.[0] ?? "?",

  async allot(url, name, tools) {
    await query(tools, url, `create database ${name}`);
    const own = new URL(url);
    own.pathname = `/${name}`;
    return own.href;
  },

  async reclaim(url, name, tools) {
    await query(tools, url, `drop database if exists ${name} with (force)`);
  },
} as const satisfies ServerKind;

/** Its files are not flushed one by one: a machine that crashes takes the whole test run with it anyway. */
async function createCluster(site: Site): Promise<void> {
  const { tools, folder } = site;
  const passwordFile = site.writeFile("password", site.password);
  const args = [
    ...["--pgdata", join(folder, "data"), "--username", user, "--pwfile", passwordFile],
    ...["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"],
  ];
  await run(tools.command("initdb", args, { folder }));
}

export async function query(tools: Toolbox | undefined, url: string, sql: string): Promise<string> {
  if (!tools) throw new Error("psql is needed to ask a Postgres server");
  const bare = new URL(url);
  bare.password = "";
  const args = ["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", bare.href, "-c", sql];
  const env = { PGPASSWORD: decodeURIComponent(new URL(url).password), PGCONNECT_TIMEOUT: "5" };
  return run(tools.command("psql", args, { env }));
}
