import { EscapementError } from "../errors.ts";

export type StoreKind = "sqlite" | "postgres" | "mysql" | "redis";

const kinds: Readonly<Record<string, { readonly kind: StoreKind; readonly port: number | null }>> = {
  sqlite: { kind: "sqlite", port: null },
  postgres: { kind: "postgres", port: 5_432 },
  postgresql: { kind: "postgres", port: 5_432 },
  mysql: { kind: "mysql", port: 3_306 },
  mariadb: { kind: "mysql", port: 3_306 },
  redis: { kind: "redis", port: 6_379 },
  rediss: { kind: "redis", port: 6_379 },
  // Their clients follow addresses that the servers tell, past any proxy.
  "redis+cluster": { kind: "redis", port: null },
  "rediss+cluster": { kind: "redis", port: null },
  "redis+sentinel": { kind: "redis", port: null },
  "rediss+sentinel": { kind: "redis", port: null },
};

/** A store that several processes can reach, and whether a proxy can stand in front of it. */
export interface StoreTarget {
  readonly kind: StoreKind;
  readonly url: string;
  /** The URL with its port spelled out; null when no proxy can stand in front. */
  readonly proxied: string | null;
}

export function storeTarget(url: string): StoreTarget {
  const scheme = /^([a-z+]+):/.exec(url)?.[1] ?? "";
  const found = Object.hasOwn(kinds, scheme) ? kinds[scheme] : undefined;
  if (found === undefined || url === "sqlite::memory:") {
    throw new EscapementError(
      "invalid-option",
      `expected a store that several processes can share (sqlite:file, postgres:, mysql:, redis:), got ${JSON.stringify(`${scheme}:…`)}`,
    );
  }
  return { kind: found.kind, url, proxied: found.port === null ? null : withPort(url, found.port) };
}

function withPort(url: string, port: number): string {
  // The URL may carry a password, so it is not repeated, as an error of URL itself would.
  const parsed = URL.parse(url);
  if (parsed === null) {
    throw new EscapementError(
      "invalid-option",
      "expected the store's URL to be scheme://user:password@host:port/database, with special characters percent-encoded (# is %23, / is %2F), got another string",
    );
  }
  if (parsed.port === "") parsed.port = String(port);
  return parsed.href;
}

/** The file of a SQLite URL. */
export function sqliteFile(url: string): string {
  return url.slice("sqlite:".length);
}
