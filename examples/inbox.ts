// A consumer that may receive a message twice and applies it once.
import { DatabaseSync } from "node:sqlite";
import { createInbox } from "../src/inbox/index.ts";
import { idempotencyKey } from "../src/index.ts";
import { sqliteInbox } from "../src/stores/sqlite/index.ts";

const database = new DatabaseSync("payments.db");
database.exec("create table if not exists payments (invoice text, cents integer)");
database.exec("delete from payments");

// #region main
const inbox = createInbox({ store: sqliteInbox("payments.db") });

async function receive(message: { key: string; invoice: string; cents: number }): Promise<string> {
  const { outcome } = await inbox.handle({ key: message.key }, (db: DatabaseSync) => {
    db.prepare("insert into payments values (?, ?)").run(message.invoice, message.cents); // commits with the marker
  });
  return outcome; // handled, duplicate (done before), or busy (another copy is being handled: redeliver later)
}
// #endregion

const id = `invoice:42:${process.pid}`;
const key = idempotencyKey({ namespace: "billing", id, schedule: null, fireAt: new Date() });
const message = { key, invoice: "42", cents: 1_000 };

const copies = await Promise.all([receive(message), receive(message)]);
console.log(`two copies at once, handled: ${copies.filter((outcome) => outcome === "handled").length}`);
console.log(`one more: ${await receive(message)}`);
console.log(`payments: ${database.prepare("select count(*) as n from payments").get()?.["n"]}`);

await inbox.close();
