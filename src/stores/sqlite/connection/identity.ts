import { EscapementError } from "../../../errors.ts";
import { readMigrations, refuseNewer, schemaVersion } from "../migrate.ts";
import { numberOf } from "../rows.ts";
import type { Connection } from "./connection.ts";

/** The numbers of a namespace and of this boot of the machine. */
export interface Identity {
  readonly ns: number;
  readonly boot: number;
}

/** Finds the numbers, creating them if they are missing. */
export function identify(connection: Connection, namespace: string, boot: string): Identity {
  connection.run("insert or ignore into escapement_namespaces (name) values (?)", namespace);
  connection.run("insert or ignore into escapement_boots (machine_id) values (?)", boot);
  const identity = findIdentity(connection, namespace, boot);
  if (identity === null) throw new Error("a namespace that was just written is not there");
  return identity;
}

/** Whether there is a schema to work on; it may be newer, but not so new that this library would misunderstand it. */
export function hasSchema(connection: Connection, path: string): boolean {
  if (schemaVersion(connection) === 0) return false;
  refuseNewer(connection, path, readMigrations());
  return true;
}

export function findIdentity(connection: Connection, namespace: string, boot: string): Identity | null {
  const row = connection.get(
    `select ns, boot from escapement_namespaces, escapement_boots where name = ? and machine_id = ?`,
    namespace,
    boot,
  );
  return row === undefined ? null : { ns: numberOf(row["ns"]), boot: numberOf(row["boot"]) };
}

/** The numbers that exist: a boot without a number has granted no leases. */
export function lookUpIdentity(connection: Connection, namespace: string, boot: string): Identity | null {
  const found = findIdentity(connection, namespace, boot);
  if (found !== null) return found;
  const row = connection.get("select ns from escapement_namespaces where name = ?", namespace);
  return row === undefined ? null : { ns: numberOf(row["ns"]), boot: noBoot };
}

const noBoot = -1;

export function missingSchema(path: string, what: "file" | "schema" | "namespace"): never {
  const missing = {
    file: `there is no database at ${path}; check the path, or run "escapement migrate" to make it`,
    schema: `SQLite store ${path}: its schema is not there yet; run "escapement migrate", or leave the migrate option on`,
    namespace: `SQLite store ${path}: it has no such namespace; check its name, or run "escapement migrate" to make it`,
  };
  throw new EscapementError("store-unmigrated", missing[what]);
}
