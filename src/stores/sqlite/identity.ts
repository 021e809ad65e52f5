import { EscapementError } from "../../errors.ts";
import type { Connection } from "./connection.ts";
import { readMigrations, refuseNewer, schemaVersion } from "./migrate.ts";
import { numberOf } from "./rows.ts";

/** The numbers that stand for a namespace and for this boot of the machine. */
export interface Identity {
  readonly ns: number;
  readonly boot: number;
}

/** Finds the numbers, making them where they are missing. */
export function identify(connection: Connection, namespace: string, boot: string): Identity {
  connection.run("insert or ignore into escapement_namespaces (name) values (?)", namespace);
  connection.run("insert or ignore into escapement_boots (machine_id) values (?)", boot);
  const identity = findIdentity(connection, namespace, boot);
  if (identity === null) throw new Error("a namespace that was just written is not there");
  return identity;
}

/** The numbers, if the schema is there and has them; it may be newer, but not so that this library would misunderstand it. */
export function knownIdentity(
  connection: Connection,
  path: string,
  namespace: string,
  boot: string,
): Identity | null {
  if (schemaVersion(connection) === 0) return null;
  refuseNewer(connection, path, readMigrations());
  return findIdentity(connection, namespace, boot);
}

function findIdentity(connection: Connection, namespace: string, boot: string): Identity | null {
  const row = connection.get(
    `select ns, boot from escapement_namespaces, escapement_boots where name = ? and machine_id = ?`,
    namespace,
    boot,
  );
  return row === undefined ? null : { ns: numberOf(row["ns"]), boot: numberOf(row["boot"]) };
}

export function missingSchema(path: string): never {
  throw new EscapementError(
    "store-unavailable",
    `SQLite store ${path}: its schema, or this namespace in it, is not there yet; call migrate() first`,
  );
}
