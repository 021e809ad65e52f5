import { EscapementError } from "../../../errors.ts";

/** Hands one statement to the client, and returns its rows. */
type Send = (sql: string, values: readonly unknown[]) => Promise<readonly unknown[]>;

/** The store's last statement on each caller's client, and the transaction it ran in. */
const tails = new WeakMap<object, Promise<string | null>>();

/**
 * Runs statements one at a time on a caller's `pg` client, because pg is dropping its own queue. The first one is sent at
 * once, before anything is awaited. One that had to wait runs only in the same transaction as the one before it: a caller that did not
 * await it may have ended that transaction, and the statement would still be written.
 */
export function queued(
  client: object,
  send: Send,
): (sql: string, values: readonly unknown[]) => Promise<string> {
  return async (sql, values) => {
    const before = tails.get(client);
    const answer =
      before === undefined ? ask(send, sql, values) : before.then((id) => askWithin(send, sql, values, id));
    const tail = answer.then(
      ({ transaction }) => transaction,
      () => null,
    );
    tails.set(client, tail);
    void tail.then(() => {
      if (tails.get(client) === tail) tails.delete(client);
    });
    return (await answer).text;
  };
}

/** Resolves when no statement of the store is waiting for the client. */
export async function settledOn(client: object): Promise<void> {
  for (let tail = tails.get(client); tail !== undefined; tail = tails.get(client)) await tail;
}

interface Answer {
  readonly transaction: string;
  readonly text: string;
}

async function ask(send: Send, sql: string, values: readonly unknown[]): Promise<Answer> {
  const [row] = await send(`select txid_current()::text as transaction, (${sql}) as answer`, values);
  return read(row) ?? refuse("the server gave no answer");
}

async function askWithin(
  send: Send,
  sql: string,
  values: readonly unknown[],
  transaction: string | null,
): Promise<Answer> {
  if (transaction === null) return refuse("an earlier statement failed, and the transaction with it");
  const isHere = `txid_current()::text = $${values.length + 1}::text`;
  const [row] = await send(
    `select txid_current()::text as transaction, case when ${isHere} then (${sql}) end as answer`,
    [...values, transaction],
  );
  return read(row) ?? refuse("the transaction had already ended; await each enqueue before the commit");
}

function read(row: unknown): Answer | null {
  const { transaction, answer }: { transaction?: unknown; answer?: unknown } = Object(row);
  return typeof transaction === "string" && typeof answer === "string" ? { transaction, text: answer } : null;
}

function refuse(why: string): never {
  throw new EscapementError(
    "transaction-unavailable",
    `the job was not written in the caller's transaction: ${why}`,
  );
}
