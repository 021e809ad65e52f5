import { describe, EscapementError } from "../errors.ts";
import { kindOf } from "../options.ts";
import type { StoreFactory } from "../store/opening.ts";

/** Which store a URL means. Each is loaded only when it is used, so no one needs the clients of the others. */
const schemes: Readonly<Record<string, (url: string) => Promise<StoreFactory>>> = {
  async sqlite(url) {
    const { sqlite } = await import("./sqlite/index.ts");
    const [path = "", query] = url.slice("sqlite:".length).split("?", 2);
    // Two slashes begin the name of a host, which a file does not have.
    if (/^\/\/(?!\/)/.test(path)) throw withHost(url, path.slice(2));
    return sqlite({ path, ...Object.fromEntries(new URLSearchParams(query)) });
  },
  postgres: postgresFromUrl,
  postgresql: postgresFromUrl,
  redis: redisFromUrl,
  rediss: redisFromUrl,
  "redis+cluster": redisFromUrl,
  "rediss+cluster": redisFromUrl,
  "redis+sentinel": redisFromUrl,
  "rediss+sentinel": redisFromUrl,
  mysql: mysqlFromUrl,
  mariadb: mysqlFromUrl,
  async memory() {
    const { memory } = await import("./memory/index.ts");
    return memory();
  },
};

async function postgresFromUrl(url: string): Promise<StoreFactory> {
  const { postgres } = await import("./postgres/index.ts");
  return postgres(url);
}

async function redisFromUrl(url: string): Promise<StoreFactory> {
  const { redis } = await import("./redis/index.ts");
  return redis(url);
}

async function mysqlFromUrl(url: string): Promise<StoreFactory> {
  const { mysql } = await import("./mysql/index.ts");
  return mysql(url);
}

/** The factory for a URL such as `"sqlite:app.db"`. */
export async function storeFromUrl(url: string): Promise<StoreFactory> {
  const scheme = /^([a-z+]+):/.exec(url)?.[1] ?? "";
  const load = Object.hasOwn(schemes, scheme) ? schemes[scheme] : undefined;
  if (load === undefined) {
    const known = Object.keys(schemes).map((one) => `${one}:`);
    throw new EscapementError(
      "invalid-option",
      `expected store to be a URL that starts with ${known.join(" or ")}, got ${shown(url, scheme)}`,
    );
  }
  return load(url);
}

function withHost(url: string, file: string): EscapementError {
  const name = file === "" ? "app.db" : file;
  return new EscapementError(
    "invalid-option",
    `expected store to be sqlite: and the name of a file, got ${describe(url)}; write ${describe(`sqlite:${name}`)}, or ${describe(`sqlite:///${name}`)} for a file in the root`,
  );
}

/** A URL may carry a password, so only its scheme is repeated; what is plainly a file's name is shown. */
function shown(url: string, scheme: string): string {
  if (scheme !== "") return JSON.stringify(`${scheme}:…`);
  if (url === "" || /[@:]/.test(url)) return kindOf(url);
  return `${describe(url)}; a SQLite file is ${describe(`sqlite:${url}`)}`;
}
