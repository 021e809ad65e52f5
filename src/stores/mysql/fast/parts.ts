import type { Answer } from "../connection/link.ts";
import { fixed, join, type Sql, sql } from "../connection/sql.ts";
import { numberOf } from "../rows.ts";
import type { Session } from "../session.ts";

/**
 * The fast path of a verb is one packet that ends with the commit, based on what this handle remembers. The first statements check that
 * this still holds, and set @escapement_go; the others do nothing unless it is 1. A caller that gets null takes the general path: the file
 * of the same name in the folder above.
 */

/** A piece of work that one packet does, if all its conditions hold. */
export interface Part<T> {
  /** Statements that look up what the condition depends on. */
  readonly before: readonly Sql[];
  readonly condition: Sql;
  /** Queues the statements that do the work. Their results are read only if the conditions held. */
  run(): { readonly answers: readonly Promise<Answer>[]; read(): T };
}

/** Whether all conditions hold. */
export const go = fixed("@escapement_go = 1");

export async function runParts<const P extends readonly Part<unknown>[], T>(
  session: Session,
  parts: P,
  combine: (values: { [K in keyof P]: P[K] extends Part<infer V> ? V : never }) => T,
): Promise<T | null> {
  const { link } = session;
  for (const statement of parts.flatMap(({ before }) => before)) link.write(statement);
  const conditions = parts.map((part) => part.condition);
  // Not with SET, whose subqueries would lock the rows they read.
  link.write(sql`select coalesce(${join(conditions, " and ")}, 0) into @escapement_go`);
  const asked = link.query(sql`select @escapement_go`);
  const running = parts.map((part) => part.run());
  session.commit();
  const [{ rows }] = await Promise.all([asked, ...running.flatMap(({ answers }) => answers)]);
  if (numberOf(rows[0]?.[0]) !== 1) return null;
  const values = running.map((one) => one.read()) as Parameters<typeof combine>[0];
  return combine(values);
}
