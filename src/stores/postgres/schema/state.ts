import { EscapementError } from "../../../errors.ts";
import { literal, quote } from "../connection/encode.ts";
import type { RunStatement } from "../connection/link.ts";
import { sqlState } from "../errors.ts";
import { numberOf, recordOf, textOf } from "../rows.ts";
import type { Functions } from "./functions.ts";
import { newestVersion } from "./migrations.ts";

/** Which part of a database a handle works on, and with which functions. */
export interface Layout {
  readonly schema: string;
  readonly namespace: string;
  readonly functions: Functions;
  /** For messages. */
  readonly place: string;
}

/** What is there already. */
export interface SchemaState {
  /** The latest migration; 0 if there is no schema. */
  readonly version: number;
  /** The number of the namespace; null if it has none yet. */
  readonly ns: number | null;
  /** Whether the functions are installed. */
  readonly hasFunctions: boolean;
  /** Whether it was noted today that they are in use. */
  readonly isUseNoted: boolean;
}

const nothing: SchemaState = { version: 0, ns: null, hasFunctions: false, isUseNoted: false };

export function isCurrent({ version, ns, hasFunctions }: SchemaState): boolean {
  return version >= newestVersion && ns !== null && hasFunctions;
}

/** Asks in one trip, without a lock. Refuses a schema that this library would misunderstand. */
export async function readState(run: RunStatement, layout: Layout): Promise<SchemaState> {
  const answer = await run(stateSql(layout), []).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  return answer === null ? nothing : toState(answer, layout.place);
}

/** Without quoting what it names: the schema, or a table of it, is not there. */
function isMissing(error: unknown): boolean {
  return ["42P01", "3F000"].includes(sqlState(error) ?? "");
}

/** The first breaking migration that this library does not know is `newer`. */
export function stateSql({ schema, namespace, functions }: Layout): string {
  const tables = quote(schema);
  return `select json_build_object(
      'version', (select coalesce(max(version), 0) from ${tables}.migrations),
      'newer', (select json_build_array(version, name) from ${tables}.migrations
        where version > ${newestVersion} and breaking order by version limit 1),
      'ns', (select ns from ${tables}.namespaces where name = ${literal(namespace)}),
      'functions', to_regnamespace(${literal(quote(functions.schema))}) is not null and f.name is not null,
      'noted', coalesce(f.used_at > now() - interval '1 day', false))::text as answer
    from (values (1)) one left join ${tables}.function_versions f on f.name = ${literal(functions.schema)}`;
}

export function toState(answer: unknown, place: string): SchemaState {
  const { version, newer, ns, functions, noted } = recordOf(answer);
  if (Array.isArray(newer)) refuseNewer(numberOf(newer[0]), textOf(newer[1]), place);
  return {
    version: numberOf(version),
    ns: ns === null ? null : numberOf(ns),
    hasFunctions: functions === true,
    isUseNoted: noted === true,
  };
}

function refuseNewer(version: number, name: string, place: string): never {
  throw new EscapementError(
    "store-newer",
    `Postgres store ${place}: its schema has version ${version} (${name}), this library knows versions ` +
      `up to ${newestVersion}; upgrade escapement in this process`,
  );
}

export function refuseMissing({ place, schema, functions }: Layout, { ns }: SchemaState): never {
  throw new EscapementError(
    "store-unmigrated",
    ns === null
      ? `Postgres store ${place}: the schema ${schema}, or this namespace in it, is not there; check the address and the namespace, or run "escapement migrate" to create them`
      : `Postgres store ${place}: the functions of this version of escapement (the schema ${functions.schema}) are not there; run "escapement migrate" with this version to install them`,
  );
}
