// A job that commits or rolls back with your own rows, through `postgres`. It needs a Postgres:
//   DATABASE_URL=postgres://… node examples/transactions-postgres.ts
import postgres from "postgres";
import { createEscapement, defineJob } from "../src/index.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/postgres";
const sql = postgres(url, { onnotice: () => {} });
await sql`create table if not exists orders_postgres (id serial primary key, total int not null)`;

const receipt = defineJob<{ order: number }>({
  name: "receipt",
  run: ({ input }) => console.log(`receipt for order ${input.order}`),
});
const app = createEscapement({ store: url, namespace: "example postgres", jobs: [receipt] });
await app.start();

// #region postgres
const { id } = await sql.begin(async (tx) => {
  const [order] = await tx<[{ id: number }]>`insert into orders_postgres (total) values (42) returning id`;
  return app.enqueue(receipt, { order: order.id }, { tx });
}); // from here on both the order and its job exist
// #endregion
await app.result(id);

let undone = "";
const failed = sql.begin(async (tx) => {
  undone = (await app.enqueue(receipt, { order: -1 }, { tx })).id;
  throw new Error("the card was declined");
});
await failed.catch((error: Error) => console.log(error.message));
console.log(`after the rollback: ${await app.get(undone)}`);

await sql.end();
await app.stop();
