import { EscapementError } from "../../../errors.ts";
import { Claimers } from "../jobs/claimers.ts";
import { Remembered } from "../jobs/remembered.ts";
import { Lines } from "../limits/lines.ts";
import { appliedMigrations, refuseNewer } from "../migrate.ts";
import { Queues } from "../queues.ts";
import { numberOf } from "../rows.ts";
import type { Link } from "./link.ts";
import { sql } from "./sql.ts";

/** The number of a namespace, and what is cached about it. */
export interface Identity {
  readonly ns: number;
  readonly lines: Lines;
  readonly claimers: Claimers;
  readonly queues: Queues;
  readonly remembered: Remembered;
}

/** Finds the number, creating it if it is missing. */
export async function identify(link: Link, namespace: string): Promise<Identity> {
  link.write(
    sql`insert into escapement_namespaces (name) values (${namespace}) on duplicate key update name = values(name)`,
  );
  const ns = await findNamespace(link, namespace);
  if (ns === null) throw new Error("a namespace that was just written is not there");
  const identity = remembering(ns);
  await identity.lines.makeCommon(link);
  await identity.queues.refresh(link);
  return identity;
}

/** Finds the number without creating it; null if it is missing. */
export async function lookUpIdentity(link: Link, namespace: string): Promise<Identity | null> {
  const ns = await findNamespace(link, namespace);
  if (ns === null) return null;
  const identity = remembering(ns);
  await identity.lines.refresh(link);
  await identity.queues.refresh(link);
  return identity;
}

/** Whether there is a schema to work on; it may be newer, but not so new that this library would misunderstand it. */
export async function hasSchema(link: Link, where: string): Promise<boolean> {
  const applied = await appliedMigrations(link);
  refuseNewer(applied, where);
  return applied.length > 0;
}

function remembering(ns: number): Identity {
  return {
    ns,
    lines: new Lines(ns),
    claimers: new Claimers(ns),
    queues: new Queues(ns),
    remembered: new Remembered(),
  };
}

async function findNamespace(link: Link, namespace: string): Promise<number | null> {
  const { rows } = await link.query(sql`select ns from escapement_namespaces where name = ${namespace}`);
  return rows[0] === undefined ? null : numberOf(rows[0][0]);
}

export function missingSchema(where: string): never {
  throw new EscapementError(
    "store-unmigrated",
    `MySQL store ${where}: its schema, or this namespace in it, is not there; check the address and the namespace, or run "escapement migrate" to create them`,
  );
}
