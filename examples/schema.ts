// Inputs validated by a schema, on enqueue and again before the handler runs.
import { z } from "zod";
import { createEscapement, defineJob, EscapementError } from "../src/index.ts";

// #region main
const invoice = defineJob({
  name: "invoice",
  input: z.object({ customer: z.string(), cents: z.number().int().default(0) }),
  run: ({ input }) => `${input.customer} owes ${input.cents}`, // typed as the schema's output
});
// #endregion

const app = createEscapement({ store: "sqlite:.escapement/schema.db", jobs: [invoice] });
await app.start();

// #region enqueue
const { id, outcome } = await app.enqueue(invoice, { customer: "ada" }, { id: "invoice:ada:2026-11" });
// #endregion
console.log(outcome);
console.log(await app.result(id));

// #region error
try {
  await app.enqueue("invoice", { customer: 42 });
} catch (error) {
  if (error instanceof EscapementError) console.log(`${error.code}: ${error.message}`);
}
// #endregion
await app.stop();
