import { EscapementError } from "../../../errors.ts";
import { answerOf, type RunStatement, type Value } from "../connection/link.ts";
import { isUnsuitable, translateError } from "../errors.ts";
import { queued } from "./queue.ts";

type Call = (...values: unknown[]) => unknown;

/**
 * Runs statements in the caller's own open transaction, from any supported library: a `pg` client, the `sql` of a `postgres`
 * transaction, or the transaction of Drizzle, Kysely, Knex or Prisma. They are recognised by shape, so none of them needs to be installed.
 * The statement is sent at once, before anything is awaited: the caller's next one must come after it.
 */
export function callersRun(tx: unknown): RunStatement {
  const run = adapterFor(tx);
  return async (sql, values) => {
    try {
      return answerOf({ rows: rowsOf(await run(sql, values)) });
    } catch (error) {
      // Errors of the caller's own transaction reach the caller unchanged.
      throw isUnsuitable(error) ? translateError(error, "in the caller's transaction") : error;
    }
  };
}

function adapterFor(tx: unknown): (sql: string, values: readonly Value[]) => unknown {
  if ((typeof tx !== "object" && typeof tx !== "function") || tx === null) return refuse(describeShape(tx));
  const method = (name: string): Call | null => {
    const found: unknown = Reflect.get(tx, name);
    return typeof found === "function" ? (...values) => Reflect.apply(found, tx, values) : null;
  };
  const raw = method("$queryRawUnsafe");
  if (raw !== null)
    return notOutside(method("$transaction"), "a Prisma client", (sql, values) => raw(sql, ...values));
  const unsafe = method("unsafe");
  if (unsafe !== null)
    return notOutside(method("begin"), "the sql of postgres itself", (sql, values) =>
      unsafe(sql, [...values]),
    );
  const executeQuery = method("executeQuery");
  if (executeQuery !== null) {
    const outside = Reflect.get(tx, "isTransaction") !== true;
    return notOutside(outside, "a Kysely database", (sql, values) =>
      executeQuery(compiledQuery(sql, values)),
    );
  }
  const execute = method("execute");
  if (execute !== null) {
    const outside = method("rollback") === null;
    return notOutside(outside, "a Drizzle database", (sql, values) => execute(drizzleQuery(sql, values)));
  }
  const knexRaw = method("raw");
  if (knexRaw !== null) {
    const outside = Reflect.get(tx, "isTransaction") !== true;
    return notOutside(outside, "a Knex instance", (sql, values) =>
      knexRaw(sql.replaceAll(/\$\d+/g, "?"), [...values]),
    );
  }
  const query = method("query");
  if (query === null) return refuse("an object of another kind");
  const run = queued(tx, async (sql, values) => rowsOf(await query(sql, [...values])));
  return notOutside("totalCount" in tx, "a pool", async (sql, values) => [
    { answer: await run(sql, values) },
  ]);
}

/** A database handle outside any transaction would write the job at once; it must never be mistaken for one inside. */
function notOutside<T>(outside: unknown, what: string, run: T): T {
  return outside === null || outside === false ? run : refuse(`${what}, outside of a transaction`);
}

/** What Kysely's `CompiledQuery.raw` makes. */
function compiledQuery(sql: string, values: readonly Value[]) {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
  return { sql, parameters: values, query, queryId: { queryId: crypto.randomUUID() } };
}

/** What Drizzle accepts as a piece of SQL: something that turns into a string and its values. */
function drizzleQuery(sql: string, values: readonly Value[]) {
  return { getSQL: () => ({ toQuery: () => ({ sql, params: [...values] }) }) };
}

function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result;
  const rows: unknown =
    typeof result === "object" && result !== null && "rows" in result ? result.rows : null;
  return Array.isArray(rows) ? rows : [];
}

function describeShape(tx: unknown): string {
  return tx === null ? "null" : typeof tx;
}

function refuse(what: string): never {
  throw new EscapementError(
    "transaction-unavailable",
    `expected tx to be an open transaction on the store's database, of pg (a client), postgres, Drizzle, Kysely, Knex or Prisma, got ${what}`,
  );
}
