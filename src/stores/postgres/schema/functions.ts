import { createHash } from "node:crypto";
import type { Clock } from "../../../clock.ts";
import type { Logger } from "../../../log.ts";
import { version } from "../../../runtime/version.ts";
import { literal, quote } from "../connection/encode.ts";
import type { RunStatement } from "../connection/link.ts";
import { functionFiles } from "../functions/files.ts";

/** The verbs' functions of one version of the library. Each version has its own schema, so nodes of several versions can share the tables. */
export interface Functions {
  /** The schema that holds them; its name changes with any of their texts. */
  readonly schema: string;
  readonly sql: string;
}

const hashLength = 10;

/** How long the name of the tables' schema may be, so that Postgres does not cut off that of the functions. */
export const maxSchemaLength = 63 - "_fn_".length - hashLength;

/** @param files their texts, in the order of their names. */
export function functionsFor(
  schema: string,
  files: Readonly<Record<string, string>> = functionFiles,
): Functions {
  const sql = Object.values(files).join("\n");
  const hash = createHash("sha256").update(sql).digest("hex").slice(0, hashLength);
  return { schema: `${schema}_fn_${hash}`, sql };
}

/** A version that no process has used for so long is dropped when another is installed. */
const kept = "interval '7 days'";

/** What makes the functions, in an open transaction. The schema may exist without its row, if the tables were dropped. */
export function installSql(schema: string, functions: Functions): string {
  const own = quote(functions.schema);
  const statements = [
    `drop schema if exists ${own} cascade`,
    `create schema ${own}`,
    `comment on schema ${own} is ${literal(`Functions of escapement ${version} on the tables of the schema ${schema}`)}`,
    `set local search_path = ${own}, ${quote(schema)}`,
    functions.sql.trim().replace(/;$/, ""),
    grantSql(schema, functions),
    `insert into function_versions (name, library) values (${literal(functions.schema)}, ${literal(version)})
       on conflict (name) do update set library = excluded.library, installed_at = now(), used_at = now()`,
    dropUnusedSql(schema, functions),
  ];
  return statements.join(";\n");
}

/** Roles that may use the tables' schema may use the functions too: the user who installs them need not be the one who calls them. */
function grantSql(schema: string, functions: Functions): string {
  const own = quote(functions.schema);
  return `do $grant$
declare
  v_role text;
begin
  for v_role in
    select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_namespace n, aclexplode(n.nspacl) a
    where n.nspname = ${literal(schema)} and a.privilege_type = 'USAGE' and a.grantee <> n.nspowner
  loop
    execute 'grant usage on schema ${own} to ' || v_role;
    execute 'grant select on ${own}.all_jobs to ' || v_role;
  end loop;
end
$grant$`;
}

/** Only what this user may drop: another one's is left to that one. */
function dropUnusedSql(schema: string, functions: Functions): string {
  return `do $drop$
declare
  v_name text;
begin
  for v_name in
    delete from function_versions v
    where v.name <> ${literal(functions.schema)} and starts_with(v.name, ${literal(`${schema}_fn_`)}) and v.used_at < now() - ${kept}
      and not exists (select from pg_namespace n where n.nspname = v.name and not pg_has_role(n.nspowner, 'usage'))
    returning v.name
  loop
    execute format('drop schema if exists %I cascade', v_name);
  end loop;
end
$drop$`;
}

/** How often a process sees to it that the use of its functions is noted; far less than they are kept. */
const noteEveryMs = 12 * 60 * 60_000;

/** Notes about once a day that a version of the functions is in use, by whichever of its processes comes first. */
export class FunctionsUse {
  readonly #run: RunStatement;
  readonly #sql: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #nextAtMs = 0;

  constructor(
    parts: { readonly run: RunStatement; readonly schema: string; readonly functions: Functions },
    clock: Clock,
    log: Logger,
  ) {
    this.#run = parts.run;
    this.#sql = `with noted as (
        update ${quote(parts.schema)}.function_versions set used_at = now()
        where name = ${literal(parts.functions.schema)} and used_at < now() - interval '1 day' returning 1)
      select count(*)::text as answer from noted`;
    this.#clock = clock;
    this.#log = log;
  }

  /** It was noted today. */
  isNoted(): void {
    this.#nextAtMs = this.#clock.monotonic() + noteEveryMs;
  }

  /** A verb is called. No call waits for the note. */
  used(): void {
    if (this.#clock.monotonic() < this.#nextAtMs) return;
    this.isNoted();
    this.#run(this.#sql, []).catch((error: unknown) => {
      this.#log.warn(
        { error },
        "could not record that this version's functions are in use; they may be dropped",
      );
    });
  }
}
