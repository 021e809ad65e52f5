import { join } from "node:path";
import { run } from "../command.ts";
import { Daemon } from "../daemon.ts";
import { freePort, isListening } from "../port.ts";
import type { ServerKind, Site } from "../server-kind.ts";
import type { Software, Toolbox } from "../software.ts";

const mariadbSoftware: Software = {
  programs: ["mariadbd", "mariadb", "mariadb-install-db"],
  // The core packages have the programs and no service; their names had a version in them once.
  packages: [["mariadb-server-core", "mariadb-client-core"], ["mariadb-server"]],
  image: "mariadb:11",
};

const mysqlSoftware: Software = {
  programs: ["mysqld", "mysql"],
  packages: [],
  image: "mysql:8.4",
  notThis: /MariaDB/i,
};

const shared = {
  client: {
    programs: ["mariadb"],
    packages: [["mariadb-client-core"], ["mariadb-client"]],
    image: "mariadb:11",
  },
  version: (url, tools) => query(tools, url, "select version()"),

  async allot(url, name, tools) {
    await query(tools, url, `create database ${name}`);
    const own = new URL(url);
    own.pathname = `/${name}`;
    return own.href;
  },

  async reclaim(url, name, tools) {
    await query(tools, url, `drop database if exists ${name}`);
  },

  async start(site) {
    const { tools, folder, password } = site;
    const port = await freePort();
    await createData(site);
    const init = site.writeFile("init.sql", initSql(password));
    const args = [
      ...["--no-defaults", `--datadir=${join(folder, "data")}`, `--init-file=${init}`],
      ...["--bind-address=127.0.0.1", `--port=${port}`, "--skip-name-resolve"],
      ...[`--socket=${join(folder, "sock")}`, `--pid-file=${join(folder, "pid")}`],
      ...["--max-connections=300", `--tmpdir=${folder}`, ...basedir(tools)],
      // Where the distribution would have made a folder for it.
      `--secure-file-priv=${folder}`,
    ];
    const url = `mysql://escapement:${password}@127.0.0.1:${port}/mysql`;
    const daemon = new Daemon({
      name: "mysql",
      command: () => tools.command(tools.software.programs[0], args, { folder }),
      log: join(folder, "log"),
      isReady: async () => (await isListening(port)) && (await query(tools, url, "select 1")) === "1",
      stopSignal: "SIGTERM",
    });
    site.daemons.push(daemon);
    await daemon.start();
    return { url };
  },
} as const satisfies Partial<ServerKind>;

/** MariaDB, or MySQL where that is what the machine has. */
export const mysql = {
  ...shared,
  name: "mysql",
  variable: "ESCAPEMENT_TEST_MYSQL",
  software: [mariadbSoftware, mysqlSoftware],
} as const satisfies ServerKind;

/** MySQL itself, where there is one. */
export const mysql8 = {
  ...shared,
  name: "mysql8",
  variable: "ESCAPEMENT_TEST_MYSQL8",
  software: [mysqlSoftware],
  isOptional: true,
} as const satisfies ServerKind;

async function createData({ tools, folder }: Site): Promise<void> {
  const data = `--datadir=${join(folder, "data")}`;
  const base = basedir(tools);
  const command =
    tools.software === mariadbSoftware
      ? tools.command("mariadb-install-db", ["--no-defaults", data, "--skip-test-db", ...base], { folder })
      : tools.command("mysqld", ["--no-defaults", data, "--initialize-insecure", ...base], { folder });
  await run(command, 120_000);
}

function basedir({ prefix }: Toolbox): string[] {
  return prefix === undefined ? [] : [`--basedir=${prefix}`];
}

/** Run by the server whenever it starts, each statement on one line. */
function initSql(password: string): string {
  return [
    `create user if not exists 'escapement'@'127.0.0.1' identified by '${password}';`,
    "grant all on *.* to 'escapement'@'127.0.0.1' with grant option;",
    `alter user 'root'@'localhost' identified by '${password}';`,
    "",
  ].join("\n");
}

export async function query(tools: Toolbox | undefined, url: string, sql: string): Promise<string> {
  if (!tools) throw new Error("a mariadb or mysql client is needed to ask a MySQL server");
  const { hostname, port, username, password } = new URL(url);
  const client = tools.software.programs.find((program) => program === "mariadb") ?? "mysql";
  const args = [
    ...["--no-defaults", "--protocol=tcp", "--connect-timeout=5", "-NB"],
    ...["-h", hostname, "-P", port || "3306", "-u", decodeURIComponent(username), "-e", sql],
  ];
  return run(tools.command(client, args, { env: { MYSQL_PWD: decodeURIComponent(password) } }));
}
