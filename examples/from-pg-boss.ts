// What a small pg-boss app becomes: see docs/FROM-PG-BOSS.md. It needs a Postgres:
//   DATABASE_URL=postgres://… node examples/from-pg-boss.ts
// #region main
import pg from "pg";
import { createEscapement, defineJob } from "../src/index.ts";

const url = process.env["DATABASE_URL"] ?? "postgres://localhost/postgres";

const receipt = defineJob<{ order: number }>({
  name: "receipt", // boss.createQueue("receipt", { retryLimit: 4, retryDelay: 30, retryBackoff: true })
  retry: { attempts: 5, backoff: { delay: "30s" } },
  run: async ({ input, log }) => {
    // boss.work("receipt", async ([job]) => …): one job per call
    log(`receipt for order ${input.order}`);
    console.log(`receipt for order ${input.order}`);
  },
});

const app = createEscapement({ store: url, namespace: "moved from pg-boss", jobs: [receipt] });
await app.start(); // boss.start()

const pool = new pg.Pool({ connectionString: url });
const client = await pool.connect();
await client.query("begin");
const { id } = await app.enqueue(receipt, { order: 42 }, { tx: client }); // boss.send("receipt", …, { db })
await client.query("commit");
await app.result(id);
// #endregion

await client.query("begin");
const undone = await app.enqueue(receipt, { order: -1 }, { tx: client });
await client.query("rollback");
client.release();
await pool.end();
console.log(`after the rollback: ${await app.get(undone.id)}`);
await app.stop();
