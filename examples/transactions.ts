// Effects that commit with the job, and jobs that commit with your own rows, in one SQLite file.
import { DatabaseSync } from "node:sqlite";
import { createEscapement, defineJob } from "../src/index.ts";

const file = ".escapement/transactions.db";

// #region tx
const credit = defineJob<{ account: string; cents: number }>({
  name: "credit",
  delivery: "effectively-once",
  run: ({ input, tx }) =>
    tx((db: DatabaseSync) => {
      db.prepare("update accounts set cents = cents + ? where id = ?").run(input.cents, input.account);
      return input.cents; // the job's result; its success commits with the update
    }),
});
// #endregion

const app = createEscapement({ store: `sqlite:${file}`, jobs: [credit] });
await app.start();

const db = new DatabaseSync(file);
db.exec("create table if not exists accounts (id text primary key, cents integer not null)");
db.exec("insert into accounts values ('ada', 0) on conflict do update set cents = 0");

// #region enqueue
db.exec("begin immediate");
db.exec("update accounts set cents = cents - 5 where id = 'ada'");
const { id } = await app.enqueue(credit, { account: "ada", cents: 100 }, { tx: db });
db.exec("commit"); // from here on the job exists; after a rollback it never did
// #endregion

await app.result(id);
console.log(`ada has ${db.prepare("select cents from accounts").get()?.["cents"]} cents`);

db.exec("begin immediate");
const undone = await app.enqueue(credit, { account: "ada", cents: 1 }, { tx: db });
db.exec("rollback");
console.log(`after the rollback: ${await app.get(undone.id)}`);
await app.stop();
