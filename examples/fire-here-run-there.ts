// One definition, two processes: this one publishes the job when it is due, the other runs its handler, once per key.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { httpEndpoint } from "../src/consumer/index.ts";
import { createInbox } from "../src/inbox/index.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { sqliteInbox } from "../src/stores/sqlite/index.ts";
import { http } from "../src/transports/http/index.ts";

const port = await freePort();
const secret = `whsec_${Buffer.alloc(32, "not so secret").toString("base64")}`;

// #region definition
const payment = defineJob({
  name: "payment",
  input: z.object({ invoice: z.string(), cents: z.number() }),
  delivery: "effectively-once",
  // Loopback is not a public address, so allow it. The other routes: kafka({ topic }), nats({ subject }), redisStreams({ stream }).
  route: http({ url: `http://127.0.0.1:${port}/jobs`, secret, allow: ["127.0.0.1"] }),
  async run({ input, job, tx }) {
    await tx((db: DatabaseSync) => {
      db.prepare("insert into payments values (?, ?)").run(input.invoice, input.cents); // commits with the inbox's marker
    });
    console.log(`there: paid ${input.invoice}, ${job.id}`);
  },
});
// #endregion

// There: the handler, behind an inbox in the same database as its tables.
const database = new DatabaseSync("there.db");
database.exec("create table if not exists payments (invoice text, cents integer); delete from payments");
// #region there
const inbox = createInbox({ store: sqliteInbox("there.db") });
const endpoint = httpEndpoint({ jobs: [payment], inbox, secret });
const server = createServer(endpoint).listen(port, "127.0.0.1");
// #endregion
await once(server, "listening");

// Here: jobs, schedules and the relay that publishes what is due. It never runs a handler.
// #region here
const app = createEscapement({ store: "sqlite:here.db", namespace: "billing", jobs: [payment] });
await app.start();
const { id } = await app.enqueue(
  payment,
  { invoice: "42", cents: 1_000 },
  { id: `invoice:42:${Date.now()}` },
);
await app.result(id, { timeout: "20s" }); // published, and acknowledged by the endpoint
// #endregion
console.log(`here: ${(await app.get(id))?.state}`);
console.log(`payments: ${database.prepare("select count(*) as n from payments").get()?.["n"]}`);

await app.stop();
await endpoint.stop();
server.closeAllConnections();
server.close();
await inbox.close();

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port: found } = probe.address() as AddressInfo;
  probe.close();
  return found;
}
