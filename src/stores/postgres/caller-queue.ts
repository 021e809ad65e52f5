import { EscapementError } from "../../errors.ts";

/** Hands one statement to the client, and returns its rows. */
type Send = (sql: string, values: readonly unknown[]) => Promise<readonly unknown[]>;

/** The last statement of the store's on each client of a caller's, and the transaction that it was in. */
const tails = new WeakMap<object, Promise<string | null>>();

/**
 * Runs statements on a client of `pg` that belongs to a caller, one after the other: pg is giving up its own queue. The first one is handed over at
 * once, before anything is awaited. One that had to wait runs only in the transaction of the one before it: a caller who did not wait for it may have
 * ended that, and it would be written all the same.
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

/** Resolves when nothing of the store's is waiting for the client. */
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
  if (transaction === null) return refuse("a statement before this one failed, and the transaction with it");
  const isHere = `txid_current()::text = $${values.length + 1}::text`;
  const [row] = await send(
    `select txid_current()::text as transaction, case when ${isHere} then (${sql}) end as answer`,
    [...values, transaction],
  );
  return read(row) ?? refuse("the transaction ended before; await each enqueue before the commit");
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
