import { EscapementError } from "../../errors.ts";
import type { ClaimRef, TransactParams, TransactResult } from "../../store.ts";
import type { PgClient } from "./client.ts";
import { textList } from "./encode.ts";
import { answerOf, type Link } from "./link.ts";
import { News } from "./news.ts";
import { listOf, recordOf, textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** Whose claim it is. */
type Held = ClaimRef & { readonly claimer: string };

/** What becomes of the connection is decided by how the transaction ended; the error itself goes to whoever called. */
type End<T> =
  | { readonly kind: "committed"; readonly value: T; readonly news: News }
  | { readonly kind: "stale" }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * Runs the caller's writes on a connection of their own; the job's success is the last statement before the commit. The row of the job is
 * locked only by that statement, so that its lease can be renewed meanwhile.
 */
export async function transact<T>(
  session: Session,
  link: Link,
  params: TransactParams<T>,
): Promise<TransactResult<T>> {
  const end = await link.borrow((client) => transactOn(session, link, client, params));
  if (end.kind === "failed") throw end.error;
  if (end.kind === "stale") return { outcome: "stale" };
  session.publish(end.news.toNotices());
  return { outcome: "committed", value: end.value };
}

async function transactOn<T>(
  session: Session,
  link: Link,
  client: PgClient,
  params: TransactParams<T>,
): Promise<End<T>> {
  const query = (
    sql: string,
    values: readonly unknown[] = [],
  ): Promise<{ readonly rows: readonly unknown[] }> => link.within(client.query(sql, values), "an answer");
  const rollBack = async <E extends End<T>>(end: E): Promise<E> => {
    await query("rollback");
    return end;
  };
  await query("begin isolation level read committed");
  const [transaction, isHeld] = listOf(answerOf(await query(heldSql(session), heldValues(session, params))));
  if (isHeld !== true) return rollBack({ kind: "stale" });
  const handle = lend(client);
  let value: T;
  let result: string | null;
  try {
    value = await params.run(handle.client);
    result = params.encode(value);
  } catch (error) {
    handle.close();
    return rollBack({ kind: "failed", error });
  }
  handle.close();
  const answer = answerOf(
    await query(finishSql(session), finishValues(session, params, textOf(transaction), result)),
  );
  if (answer === "ended") return rollBack({ kind: "failed", error: endedByCaller() });
  const news = new News();
  if (answer !== null) {
    const told = recordOf(answer);
    if (told["missed"] !== null) return rollBack({ kind: "stale" });
    news.add(told["news"]);
  }
  news.ended(params.id);
  await query("commit");
  return { kind: "committed", value, news };
}

/** The number of the transaction, and whether the claim is still the claimer's. */
function heldSql({ schema }: Session): string {
  return `select json_build_array(txid_current()::text, exists (
    select from ${schema}.jobs where ns = $1 and id = $2 and token = $3 and claimer = $4 and state = 'active' and not relayed
  ))::text as answer`;
}

function heldValues({ ns }: Session, { id, token, claimer }: Held): unknown[] {
  return [ns, id, token, claimer];
}

/** Ends the claim, if the caller left the transaction open: in another one, nothing would bind it to the caller's writes. */
function finishSql({ schema }: Session): string {
  return `select (case when txid_current()::text = $1
      then ${schema}.finish_succeeded($2, $3, $4, null, null, $5::text::text[], array[$6::integer], $7::text::text[])
      else '"ended"'::json end)::text as answer`;
}

function finishValues(
  { ns, now }: Session,
  { id, token, claimer }: Held,
  transaction: string,
  result: string | null,
): unknown[] {
  return [transaction, ns, now, claimer, textList([id]), token, textList([result])];
}

function endedByCaller(): EscapementError {
  return new EscapementError(
    "transaction-used",
    "the function given to tx ended the transaction itself; leave commit and rollback to the store",
  );
}

/** The connection as the caller gets it: usable until the transaction is over, and not to be given back by anybody else. */
function lend(client: PgClient): { readonly client: unknown; close(): void } {
  let open = true;
  const refuse = (): never => {
    throw new EscapementError(
      "transaction-used",
      "the transaction is over; use its handle only inside the function that received it",
    );
  };
  const lent = new Proxy(client, {
    get(target, name) {
      if (name === "release" || name === "end") return () => {};
      const found: unknown = Reflect.get(target, name);
      if (typeof found !== "function") return found;
      return (...values: unknown[]) => (open ? Reflect.apply(found, target, values) : refuse());
    },
  });
  return {
    client: lent,
    close: () => {
      open = false;
    },
  };
}
