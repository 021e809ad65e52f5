// Jobs that a relay publishes to Kafka and a consumer elsewhere runs. It needs a broker, so no test runs it; the compiler checks it.
import type pg from "pg";
import { z } from "zod";
import { type Consumer, consume } from "../../src/consumer/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createEscapement, defineJob, type Escapement } from "../../src/index.ts";
import { postgresInbox } from "../../src/stores/postgres/index.ts";
import { kafka, kafkaSource } from "../../src/transports/kafka/index.ts";

// #region definition
export const payment = defineJob({
  name: "payment",
  input: z.object({ invoice: z.string(), cents: z.number() }),
  delivery: "effectively-once",
  route: kafka({ topic: "payments" }), // here: the relay publishes it
  run: async ({ input, tx }) => {
    // there: the consumer runs it
    await tx((db: pg.ClientBase) =>
      db.query("insert into payments values ($1, $2)", [input.invoice, input.cents]),
    );
  },
});
// #endregion

// #region here
export async function startHere(store: string): Promise<Escapement> {
  const app = createEscapement({ store, jobs: [payment] }); // ESCAPEMENT_KAFKA says where the brokers are
  await app.start();
  return app;
}
// #endregion

// #region there
export async function startThere(database: string): Promise<Consumer> {
  const consumer = consume({
    jobs: [payment], // the same definitions; each needs its handler
    from: kafkaSource({ topic: "payments", group: "payments" }),
    inbox: createInbox({ store: postgresInbox(database) }), // in the database that holds the effects
    deadLetter: kafka({ topic: "payments.dead" }), // or onDead: (dead) => …; exactly one of them
    concurrency: 10,
  });
  await consumer.start();
  return consumer; // stop it with await consumer.stop({ timeout: "30s" })
}
// #endregion
