// A job that commits or rolls back with your own rows, through Drizzle. It needs a Postgres:
//   DATABASE_URL=postgres://… node examples/transactions-drizzle.ts
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable, serial } from "drizzle-orm/pg-core";
import pg from "pg";
import { createEscapement, defineJob } from "../src/index.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/postgres";
const pool = new pg.Pool({ connectionString: url });
const db = drizzle(pool);
const orders = pgTable("orders_drizzle", { id: serial().primaryKey(), total: integer().notNull() });
await db.execute("create table if not exists orders_drizzle (id serial primary key, total int not null)");

const receipt = defineJob<{ order: number }>({
  name: "receipt",
  run: ({ input }) => console.log(`receipt for order ${input.order}`),
});
const app = createEscapement({ store: url, namespace: "example drizzle", jobs: [receipt] });
await app.start();

// #region drizzle
const { id } = await db.transaction(async (tx) => {
  const [order] = await tx.insert(orders).values({ total: 42 }).returning();
  return app.enqueue(receipt, { order: order?.id ?? 0 }, { tx });
}); // from here on both the order and its job exist
// #endregion
await app.result(id);

let undone = "";
const failed = db.transaction(async (tx) => {
  undone = (await app.enqueue(receipt, { order: -1 }, { tx })).id;
  throw new Error("the card was declined");
});
await failed.catch((error: Error) => console.log(error.message));
console.log(`after the rollback: ${await app.get(undone)}`);

await pool.end();
await app.stop();
