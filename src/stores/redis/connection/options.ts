import type { Clock } from "../../../clock.ts";
import { type Duration, parseDuration } from "../../../duration.ts";
import { describe, EscapementError } from "../../../errors.ts";
import { checkName } from "../../../names.ts";
import { checkInteger, checkKnown, checkLogin, encodeLogin } from "../../../options.ts";
import { slotCount } from "../../../store/partitions.ts";
import type { Connection, RedisClient, RedisNode } from "./client.ts";

export interface RedisOptions {
  /**
   * `redis://user:password@host:6379/0`, `rediss://` with TLS, `redis+cluster://:password@a:6379,b:6379`, or
   * `redis+sentinel://:password@a:26379,b:26379/name`; with `?prefix=…&slots=…&callTimeout=…` if wanted.
   */
  readonly url?: string;
  /** The sentinels that know where the primary is; together with `name`. */
  readonly sentinels?: readonly RedisNode[];
  /** What the sentinels call the primary. */
  readonly name?: string;
  readonly sentinelPassword?: string;
  /** Some nodes of a Redis Cluster; the others are found through them. */
  readonly nodes?: readonly RedisNode[];
  readonly username?: string;
  readonly password?: string;
  /** The number of the database, on servers that have several. @default 0 */
  readonly db?: number;
  /** @default false, or true for rediss:// */
  readonly tls?: boolean;
  /** Your own client (`new Redis(…)` or `new Cluster(…)` of ioredis). You must close it yourself. */
  readonly client?: RedisClient;
  /** Prefix of all keys. @default "escapement" */
  readonly prefix?: string;
  /**
   * How many slots of a Redis Cluster a namespace is spread over. With more than one, claims are in order only within a slot, and
   * unique, debounce, limits of keys and queues, and `after` across slots are refused. It is fixed when the namespace is created.
   *
   * @default 1
   */
  readonly slots?: number;
  /** How long one call may take, connecting included. @default "10s" */
  readonly callTimeout?: Duration;
  /** The store's clock, for tests and simulations. @default the server's own */
  readonly clock?: Clock;
}

/** The options, resolved once. */
export interface ResolvedOptions {
  readonly connection: Connection;
  readonly prefix: string;
  readonly slots: number;
  readonly callTimeoutMs: number;
  /** Null: the store's own. */
  readonly client: RedisClient | null;
  /** Null: the server's own. */
  readonly clock: Clock | null;
}

const known = [
  "url",
  "sentinels",
  "name",
  "sentinelPassword",
  "nodes",
  "username",
  "password",
  "db",
  "tls",
  "client",
  "prefix",
  "slots",
  "callTimeout",
  "clock",
];

export function resolveOptions(given: RedisOptions): ResolvedOptions {
  checkKnown(given, known, "redis");
  const options = { ...queryOf(given.url), ...given };
  const places = [options.url, options.sentinels, options.nodes, options.client];
  if (places.filter((one) => one !== undefined).length !== 1) {
    throw new EscapementError(
      "invalid-option",
      "expected redis to get one of url, sentinels, nodes and client",
    );
  }
  return {
    connection: connectionOf(options),
    client: options.client ?? null,
    prefix: checkName(options.prefix ?? "escapement", "redis' prefix"),
    slots: checkInteger(options.slots ?? 1, 1, slotCount, "redis' slots"),
    callTimeoutMs: parseDuration(options.callTimeout ?? "10s", "redis' callTimeout"),
    clock: options.clock ?? null,
  };
}

function connectionOf(options: RedisOptions): Connection {
  const base = {
    primary: options.name ?? null,
    username: options.username ?? null,
    password: options.password ?? null,
    sentinelPassword: options.sentinelPassword ?? null,
    db: options.db ?? 0,
    tls: options.tls ?? false,
  };
  if (options.url !== undefined) return { ...base, ...parseUrl(options.url) };
  if (options.sentinels !== undefined) {
    return {
      ...base,
      mode: "sentinel",
      nodes: options.sentinels,
      primary: checkName(options.name, "redis' name"),
    };
  }
  if (options.nodes !== undefined) return { ...base, mode: "cluster", nodes: options.nodes };
  return { ...base, mode: isCluster(options.client) ? "cluster" : "single", nodes: [] };
}

function isCluster(client: RedisClient | undefined): boolean {
  return client !== undefined && "isCluster" in client && client.isCluster === true;
}

const urlPattern = /^redis(s?)(?:\+(cluster|sentinel))?:\/\/(?:([^@/]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/;

/** Parsed by hand: the standard does not allow a URL with several hosts. A message never repeats it, since it may hold a password. */
function parseUrl(url: string): Partial<Connection> & Pick<Connection, "mode" | "nodes" | "tls"> {
  const match = typeof url === "string" ? urlPattern.exec(url) : null;
  const [, secure, kind, login = "", hosts = "", path = ""] = match ?? [];
  if (match === null || hosts === "") {
    throw new EscapementError(
      "invalid-option",
      `expected redis' url to be redis://host:port, rediss://…, redis+cluster://host:port,… or redis+sentinel://host:port,…/name, got ${typeof url === "string" ? "another string" : describe(url)}`,
    );
  }
  const [username, password = ""] = checkLogin(login, "redis' url");
  const mode = kind === "cluster" || kind === "sentinel" ? kind : "single";
  const nodes = hosts.split(",").map((host) => nodeOf(host, mode === "sentinel" ? 26_379 : 6_379));
  return {
    mode,
    nodes,
    tls: secure === "s",
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(mode === "sentinel" ? { primary: checkName(decode(path), "the name in redis' url") } : {}),
    ...(mode === "single" && path !== ""
      ? { db: checkInteger(Number(path), 0, 1_000_000, "the database in redis' url") }
      : {}),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new EscapementError(
      "invalid-option",
      "expected the name in redis' url to be percent-encoded (a percent sign itself is %25), got another string",
    );
  }
}

/** The query parameters of a URL. */
function queryOf(url: string | undefined): RedisOptions {
  const query =
    typeof url === "string" ? Object.fromEntries(new URLSearchParams(urlPattern.exec(url)?.[6])) : {};
  checkKnown(query, ["prefix", "slots", "callTimeout"], "redis' url");
  const { prefix, slots, callTimeout } = query;
  return {
    ...(prefix === undefined ? {} : { prefix }),
    ...(slots === undefined ? {} : { slots: Number(slots) }),
    ...(callTimeout === undefined ? {} : { callTimeout: parseDuration(callTimeout, "redis' callTimeout") }),
  };
}

function nodeOf(text: string, defaultPort: number): RedisNode {
  const [, host, port] = /^(\[[^\]]+\]|[^:]*)(?::(\d+))?$/.exec(text) ?? [];
  if (host === undefined || Number(port ?? defaultPort) > 65_535) {
    throw new EscapementError(
      "invalid-option",
      `expected each host in redis' url to be host or host:port, with IPv6 in brackets, got something else; ${encodeLogin}`,
    );
  }
  const name = host.replace(/^\[|\]$/g, "");
  return { host: name === "" ? "localhost" : name, port: port === undefined ? defaultPort : Number(port) };
}

/** The servers as a person would name them. One without TLS says nothing at all to somebody who begins with it, so it is named. */
export function whereOf({ nodes, primary, tls }: Connection): string {
  if (nodes.length === 0) return "of the given client";
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`).join(",") + (tls ? " over TLS" : "");
  return primary === null ? hosts : `${primary} (sentinels ${hosts})`;
}
