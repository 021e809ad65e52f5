import { EscapementError } from "../../errors.ts";
import { isPlainSuccess, type Success } from "../../state.ts";
import type { TransactParams, TransactResult } from "../../store.ts";
import { settledOn } from "./caller-queue.ts";
import { endingsOf } from "./claim.ts";
import type { PgClient } from "./client.ts";
import { literal } from "./encode.ts";
import { sqlState } from "./errors.ts";
import { failed, LentClient } from "./lent-client.ts";
import { answerOf, type Link } from "./link.ts";
import { News } from "./news.ts";
import { textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** What `transact` is asked for, where its function has been given its way to enqueue. */
export type BoundParams<T> = Omit<TransactParams<T>, "run"> & {
  readonly run: (tx: unknown) => T | Promise<T>;
};

/** How the transaction ended; the error itself goes to whoever called. */
type End<T> =
  | { readonly kind: "committed"; readonly value: T; readonly news: News }
  | { readonly kind: "stale"; readonly broken: boolean }
  | { readonly kind: "failed"; readonly error: unknown; readonly broken: boolean };

/**
 * Runs the caller's writes on a connection of their own. The job's success and the commit are one message at the end: the row of the job is
 * locked only while the server works on that, whatever becomes of this process meanwhile.
 */
export async function transact<T>(
  session: Session,
  link: Link,
  params: BoundParams<T>,
): Promise<TransactResult<T>> {
  const end = await link.borrow(
    (client) => transactOn(session, link, client, params),
    (ended) => ended.kind !== "committed" && ended.broken,
  );
  if (end.kind === "failed") throw end.error;
  if (end.kind === "stale") return { outcome: "stale" };
  session.publish(end.news.toNotices());
  return { outcome: "committed", value: end.value };
}

async function transactOn<T>(
  session: Session,
  link: Link,
  client: PgClient,
  params: BoundParams<T>,
): Promise<End<T>> {
  const ask = async (sql: string, place: number): Promise<unknown> =>
    answerOf(nthOf(await link.within(client.query(sql), "an answer"), place));
  /** What the caller's function threw is not hidden by a connection that broke too. */
  const rollBack = (): Promise<boolean> =>
    link.within(client.query("rollback"), "an answer").then(
      () => false,
      () => true,
    );
  const transaction = await ask(beginSql(session, params), 1);
  if (transaction === null) return { kind: "stale", broken: await rollBack() };
  const lent = new LentClient(client);
  let value: T;
  let outcome: Success;
  try {
    value = await params.run(lent.client);
    // Jobs that it enqueued and did not wait for belong to the transaction all the same.
    await settledOn(lent.client);
    outcome = params.encode(value);
  } catch (error) {
    lent.close();
    return { kind: "failed", broken: await rollBack(), error: lent.explain(error, link.place) };
  }
  lent.close();
  try {
    const news = new News();
    news.add(await ask(succeedSql(session, params, textOf(transaction), outcome), 0));
    news.ended(params.id);
    return { kind: "committed", value, news };
  } catch (error) {
    const state = sqlState(error);
    if (state === "ES003") return { kind: "stale", broken: await rollBack() };
    if (state === "ES004") return { kind: "failed", broken: await rollBack(), error: endedByCaller() };
    // A caller's function that caught the failure goes on in a transaction that is over.
    if (lent.failure !== null) throw failed(lent.failure, link.place);
    throw error;
  }
}

/** What pg gives for several statements in one message is a list. */
function nthOf(results: { readonly rows: readonly unknown[] }, place: number): typeof results {
  const result: unknown = Array.isArray(results) ? results[place] : results;
  return result as typeof results;
}

function beginSql({ schema, ns }: Session, { id, token, claimer }: Claim): string {
  return `begin isolation level read committed;
    select ${schema}.begin_effect(${ns}, ${literal(id)}, ${integer(token)}, ${literal(claimer)})::text as answer`;
}

function succeedSql(
  { schema, ns, now }: Session,
  { id, token, claimer }: Claim,
  transaction: string,
  outcome: Success,
): string {
  const values = [
    ns,
    now ?? "null",
    literal(transaction),
    literal(id),
    integer(token),
    literal(claimer),
    outcome.result === null ? "null" : literal(outcome.result),
    isPlainSuccess(outcome) ? "null" : `${literal(endingsOf([{ id, token, outcome }]))}::json`,
  ];
  return `select ${schema}.succeed_effect(${values.join(", ")})::text as answer; commit`;
}

type Claim = Pick<TransactParams<unknown>, "id" | "token" | "claimer">;

function integer(value: number): string {
  return String(Math.trunc(value));
}

function endedByCaller(): EscapementError {
  return new EscapementError(
    "transaction-used",
    "the function given to tx ended the transaction itself; leave commit and rollback to the store",
  );
}
