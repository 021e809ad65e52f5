// A handler may run twice: it did its work, and the process died before that was recorded. What to do about it when the effect cannot
// commit together with the job (`tx`) or with an inbox. Each handler here fails once, after its effect, and is retried.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { createEscapement, defineJob, type HandlerContext } from "../src/index.ts";

const database = new DatabaseSync(":memory:");
database.exec(`
  create table subscriptions (id text primary key, state text);
  create table done (key text primary key);
  create table balances (customer text primary key, cents integer);
  create table emails (key text primary key, sent_at text);
  create table payment_attempts (key text primary key, state text);
  create table events (key text primary key, body text, published integer default 0);
  insert into subscriptions values ('s1', 'active');
  insert into balances values ('ada', 0);
`);
const mailbox: string[] = [];
const bank = await startBank();
const retry = { attempts: 3, backoff: { delay: 10 } } as const;

/** The crash: after the effect, before it is recorded. */
function crashOnce({ job }: HandlerContext<unknown>): void {
  if (job.attempt === 1) throw new Error("the process ended here");
}

// #region natural
// 1. Natural idempotency: set a state instead of applying a change. The second run changes nothing.
const cancelSubscription = defineJob<string>({
  name: "cancel-subscription",
  retry,
  run(context) {
    database.prepare("update subscriptions set state = 'cancelled' where id = ?").run(context.input);
    crashOnce(context); // stands for a crash right here: leave it out
  },
});
// #endregion

// #region token
// 2. A token in the application's database: the key and the effect in one transaction. The unique key decides, not a check beforehand.
const deposit = defineJob<{ customer: string; cents: number }>({
  name: "deposit",
  retry,
  run(context) {
    const { input, job } = context;
    database.exec("begin immediate");
    try {
      const isNew =
        database.prepare("insert or ignore into done values (?)").run(job.idempotencyKey).changes === 1;
      if (isNew) {
        database
          .prepare("update balances set cents = cents + ? where customer = ?")
          .run(input.cents, input.customer);
      }
      database.exec("commit");
    } catch (error) {
      database.exec("rollback");
      throw error;
    }
    crashOnce(context); // stands for a crash right here: leave it out
  },
});
// #endregion

// #region api
// 3. An external API that takes an Idempotency-Key: it remembers the key and answers the second call like the first.
const charge = defineJob<{ cents: number }>({
  name: "charge",
  retry,
  async run(context) {
    const { input, job, signal } = context;
    const headers = { "idempotency-key": job.idempotencyKey, "content-type": "application/json" };
    const answer = await fetch(`${bank.url}/charges`, {
      method: "POST",
      headers,
      body: JSON.stringify(input),
      signal,
    });
    if (!answer.ok) throw new Error(`the bank answered ${answer.status}`);
    crashOnce(context); // stands for a crash right here: leave it out
  },
});
// #endregion

// #region email
// 4. A unique row before an e-mail: an e-mail cannot be unsent, so write the row first. It is sent at most once.
const receipt = defineJob<string>({
  name: "receipt",
  retry,
  run(context) {
    const { input, job } = context;
    const row = database
      .prepare("insert or ignore into emails values (?, datetime())")
      .run(job.idempotencyKey);
    if (row.changes === 0) return;
    mailbox.push(`receipt for ${input}`);
    crashOnce(context); // stands for a crash right here: leave it out
  },
});
// #endregion

// #region payment
// 5. A payment attempt under the idempotency key: written before the call, so the retry asks the bank first instead of paying again.
const payOut = defineJob<{ cents: number }>({
  name: "pay-out",
  retry,
  async run(context) {
    const { input, job } = context;
    const key = job.idempotencyKey;
    const begun = database.prepare("insert or ignore into payment_attempts values (?, 'begun')").run(key);
    if (begun.changes === 1 || !(await bank.knows(key))) await bank.pay(key, input.cents);
    crashOnce(context); // stands for a crash right here: leave it out
    database.prepare("update payment_attempts set state = 'done' where key = ?").run(key);
  },
});
// #endregion

// #region events
// 6. An outbound event log: the event is a row under a unique key; a publisher sends the rows, and consumers dedupe by the same key.
const shipped = defineJob<{ order: string }>({
  name: "shipped",
  retry,
  run(context) {
    const { input, job } = context;
    database
      .prepare("insert or ignore into events (key, body) values (?, ?)")
      .run(job.idempotencyKey, JSON.stringify(input));
    crashOnce(context); // stands for a crash right here: leave it out
  },
});
// #endregion

// #region toctou
// And this does not work: look first, act later. Two copies can both look before either acts.
const looked = new Set<string>();
async function checkThenSend(key: string): Promise<void> {
  if (looked.has(key)) return; // time of check
  await new Promise((resolve) => setImmediate(resolve)); // anything that takes time: a query, a request
  mailbox.push(`sent although ${key} was checked`); // time of use
  looked.add(key);
}
// #endregion

const jobs = [cancelSubscription, deposit, charge, receipt, payOut, shipped];
const app = createEscapement({ store: "sqlite::memory:", jobs, poll: "50ms" });
await app.start();
const receipts = await Promise.all([
  app.enqueue(cancelSubscription, "s1"),
  app.enqueue(deposit, { customer: "ada", cents: 5 }),
  app.enqueue(charge, { cents: 700 }),
  app.enqueue(receipt, "invoice 42"),
  app.enqueue(payOut, { cents: 900 }),
  app.enqueue(shipped, { order: "7" }),
]);
for (const { id } of receipts) {
  await app.result(id, { timeout: "20s" });
  const job = await app.get(id);
  if (job?.attempt !== 2) throw new Error(`${job?.name} should have run twice`);
}
await app.stop();

const one = (sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0];
console.log(`natural idempotency: ${one("select state from subscriptions")}`);
console.log(`token in one transaction: ada has ${one("select cents from balances")} cents`);
console.log(`idempotent API: ${bank.charges} charge`);
console.log(`unique row before an e-mail: ${mailbox.length} e-mail`);
console.log(`payment attempt under its key: ${bank.payments} payment`);
console.log(`outbound event log: ${one("select count(*) from events")} event`);

mailbox.length = 0;
await Promise.all([checkThenSend("k"), checkThenSend("k")]);
console.log(`check, then act: ${mailbox.length} e-mails, which is one too many`);
bank.close();

/** A bank that keeps its promises. */
async function startBank() {
  const charges = new Map<string, string>();
  const payments = new Map<string, number>();
  const server = createServer((request, response) => {
    const key = String(request.headers["idempotency-key"]);
    if (!charges.has(key)) charges.set(key, `charge-${charges.size + 1}`);
    request.resume();
    response.end(charges.get(key));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get charges() {
      return charges.size;
    },
    get payments() {
      return payments.size;
    },
    knows: async (key: string) => payments.has(key),
    pay: async (key: string, cents: number) => {
      if (payments.has(key)) throw new Error("paid twice");
      payments.set(key, cents);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
