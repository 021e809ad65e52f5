// A job that commits or rolls back with your own rows, through `pg`. It needs a Postgres:
//   DATABASE_URL=postgres://… node examples/transactions-pg.ts
import pg from "pg";
import { createEscapement, defineJob } from "../src/index.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/postgres";
const pool = new pg.Pool({ connectionString: url });
await pool.query("create table if not exists orders_pg (id serial primary key, total int not null)");

const receipt = defineJob<{ order: number }>({
  name: "receipt",
  run: ({ input }) => console.log(`receipt for order ${input.order}`),
});
const app = createEscapement({ store: url, namespace: "example pg", jobs: [receipt] });
await app.start();

// #region pg
const client = await pool.connect();
await client.query("begin");
const { rows } = await client.query("insert into orders_pg (total) values (42) returning id");
const { id } = await app.enqueue(receipt, { order: rows[0].id }, { tx: client });
await client.query("commit"); // from here on both the order and its job exist
// #endregion
await app.result(id);

await client.query("begin");
const undone = await app.enqueue(receipt, { order: -1 }, { tx: client });
await client.query("rollback");
client.release();
console.log(`after the rollback: ${await app.get(undone.id)}`);

await pool.end();
await app.stop();
