// A job that commits or rolls back with your own rows, through Kysely. It needs a Postgres:
//   DATABASE_URL=postgres://… node examples/transactions-kysely.ts
import { type Generated, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { createEscapement, defineJob } from "../src/index.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/postgres";
interface Tables {
  orders_kysely: { id: Generated<number>; total: number };
}
const db = new Kysely<Tables>({
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
});
await sql`create table if not exists orders_kysely (id serial primary key, total int not null)`.execute(db);

const receipt = defineJob<{ order: number }>({
  name: "receipt",
  run: ({ input }) => console.log(`receipt for order ${input.order}`),
});
const app = createEscapement({ store: url, namespace: "example kysely", jobs: [receipt] });
await app.start();

// #region kysely
const { id } = await db.transaction().execute(async (tx) => {
  const order = await tx
    .insertInto("orders_kysely")
    .values({ total: 42 })
    .returning("id")
    .executeTakeFirstOrThrow();
  return app.enqueue(receipt, { order: order.id }, { tx });
}); // from here on both the order and its job exist
// #endregion
await app.result(id);

let undone = "";
const failed = db.transaction().execute(async (tx) => {
  undone = (await app.enqueue(receipt, { order: -1 }, { tx })).id;
  throw new Error("the card was declined");
});
await failed.catch((error: Error) => console.log(error.message));
console.log(`after the rollback: ${await app.get(undone)}`);

await db.destroy();
await app.stop();
