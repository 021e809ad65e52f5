import { EscapementError } from "../../errors.ts";
import { isPlainSuccess, type Success } from "../../state.ts";
import type { Report, TransactParams, TransactResult } from "../../store/claims.ts";
import { NoticeDraft } from "../notice-draft.ts";
import { failed, LentClient } from "./caller/lent-client.ts";
import { settledOn } from "./caller/queue.ts";
import { endingsOf } from "./claim.ts";
import type { PgClient } from "./connection/client.ts";
import { literal, toJson } from "./connection/encode.ts";
import { answerOf, type Link } from "./connection/link.ts";
import { addReported } from "./connection/reported-notices.ts";
import { sqlState } from "./errors.ts";
import { textOf } from "./rows.ts";
import type { Session } from "./session.ts";

/** The parameters of `transact`, once its function has a way to enqueue. */
export type BoundParams<T> = Omit<TransactParams<T>, "run"> & {
  readonly run: (tx: unknown) => T | Promise<T>;
};

/** How the transaction ended; the error itself goes to the caller. */
type End<T> =
  | { readonly kind: "committed"; readonly value: T; readonly draft: NoticeDraft }
  | { readonly kind: "stale"; readonly broken: boolean }
  | { readonly kind: "failed"; readonly error: unknown; readonly broken: boolean };

/**
 * Runs the caller's writes on a dedicated connection. The job's success and the commit are one message at the end: the job's row is
 * locked only while the server processes that message, whatever happens to this process in the meantime.
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
  session.publish(end.draft.toNotices());
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
  /** A connection that broke too does not hide what the caller's function threw. */
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
  let reported: Report | null;
  try {
    value = await params.run(lent.client);
    // Jobs that it enqueued without awaiting still belong to the transaction.
    await settledOn(lent.client);
    outcome = params.encode(value);
    reported = params.report?.() ?? null;
  } catch (error) {
    lent.close();
    return { kind: "failed", broken: await rollBack(), error: lent.explain(error, link.place) };
  }
  lent.close();
  try {
    const draft = new NoticeDraft();
    const report = reported === null ? "" : reportSql(session, params, reported);
    const succeed = succeedSql(session, params, textOf(transaction), outcome);
    addReported(draft, await ask(`${report}${succeed}`, report === "" ? 0 : 1));
    draft.ended(params.id);
    return { kind: "committed", value, draft };
  } catch (error) {
    const state = sqlState(error);
    if (state === "ES003") return { kind: "stale", broken: await rollBack() };
    if (state === "ES004") return { kind: "failed", broken: await rollBack(), error: endedByCaller() };
    // A caller's function that swallowed the failure continues in a transaction that is over.
    if (lent.failure !== null) throw failed(lent.failure, link.place);
    throw error;
  }
}

/** For several statements in one message, pg returns a list. */
function nthOf(results: { readonly rows: readonly unknown[] }, place: number): typeof results {
  const result: unknown = Array.isArray(results) ? results[place] : results;
  return result as typeof results;
}

function beginSql({ functions, ns }: Session, { id, token, claimer }: Claim): string {
  return `begin isolation level read committed;
    select ${functions}.begin_effect(${ns}, ${literal(id)}, ${integer(token)}, ${literal(claimer)})::text as answer`;
}

function succeedSql(
  { functions, ns, now }: Session,
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
  return `select ${functions}.succeed_effect(${values.join(", ")})::text as answer; commit`;
}

function reportSql({ functions, ns, now }: Session, { id, token, claimer }: Claim, reported: Report): string {
  const reports = `${literal(toJson([{ id, token, ...reported }]))}::json`;
  return `select ${functions}.report_progress(${ns}, ${now ?? "null"}, ${literal(claimer)}, ${reports});`;
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
