import { join } from "node:path";
import { Daemon } from "../daemon.ts";
import { freePort, isListening } from "../port.ts";
import type { ServerKind } from "../server-kind.ts";
import { postgres, postgresFolders, query } from "./postgres.ts";

/** PgBouncer in transaction mode: sessions do not outlive a transaction, as behind most hosted databases. */
export const pgbouncer = {
  name: "pgbouncer",
  variable: "ESCAPEMENT_TEST_PGBOUNCER",
  software: [
    {
      programs: ["pgbouncer", "psql"],
      folders: postgresFolders,
      packages: [["pgbouncer", "postgresql-client"]],
      image: "edoburu/pgbouncer:latest",
    },
  ],
  client: postgres.client,
  behind: postgres,
  version: postgres.version,
  allot: postgres.allot,
  reclaim: postgres.reclaim,

  async start(site) {
    const { tools, folder, upstreamUrl } = site;
    if (upstreamUrl === undefined) throw new Error("PgBouncer needs a Postgres to stand in front of");
    const port = await freePort();
    const behind = new URL(upstreamUrl);
    const [user, password] = [behind.username, behind.password].map(decodeURIComponent);
    const users = site.writeFile("users.txt", `${quote(user)} ${quote(password)}\n`);
    const config = site.writeFile(
      "pgbouncer.ini",
      [
        "[databases]",
        `* = host=${behind.hostname} port=${behind.port || 5432}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        "unix_socket_dir =",
        "pool_mode = transaction",
        "auth_type = scram-sha-256",
        `auth_file = ${users}`,
        `stats_users = ${user}`,
        "max_client_conn = 1000",
        // For each database, and every test file has its own.
        "default_pool_size = 10",
        "",
      ].join("\n"),
    );
    const url = new URL(upstreamUrl);
    url.host = `127.0.0.1:${port}`;
    const daemon = new Daemon({
      name: "pgbouncer",
      command: () => tools.command("pgbouncer", [config], { folder }),
      log: join(folder, "log"),
      isReady: async () => (await isListening(port)) && (await query(tools, url.href, "select 1")) === "1",
      stopSignal: "SIGTERM",
    });
    site.daemons.push(daemon);
    await daemon.start();
    return { url: url.href };
  },
} as const satisfies ServerKind;

function quote(text: string | undefined): string {
  return `"${(text ?? "").replaceAll('"', '""')}"`;
}
