import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { FaultProxy } from "../../proof/proxy.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { loseReply } from "../../testing/lost-reply.ts";
import { patiently, until } from "../../testing/until.ts";
import { type PostgresOptions, postgres } from "./index.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();
const pooler = await testbed.pgbouncer();

async function open(options: PostgresOptions): Promise<Store> {
  const store = await postgres(options).open({ namespace: "n", clock: systemClock, log: silentLogger });
  await store.migrate();
  return store;
}

/** A server that greets and ends in the same packet, as one does that is shut down just then. */
async function greetingAndGone(): Promise<Server> {
  const packet = (type: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const farewell = "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      const greeting = [packet("R", Buffer.alloc(4)), packet("Z", Buffer.from("I"))];
      socket.end(Buffer.concat([...greeting, packet("E", Buffer.from(farewell))]));
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return listener;
}

describe("the way to Postgres", { skip: server.skip }, () => {
  let admin: pg.Client;
  before(async () => {
    admin = new pg.Client(server.url);
    await admin.connect();
  });
  after(() => admin.end());

  const killAll = async (): Promise<void> => {
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
  };

  test("killed connections are replaced, idle ones without anybody noticing [K6]", async () => {
    const store = await open({ url: server.url, schema: newSchema() });
    await store.enqueue({ jobs: [newJob("before")] });
    for (let round = 0; round < 3; round += 1) {
      await killAll();
      await patiently(() => store.enqueue({ jobs: [newJob(`after ${round}`)] }));
    }
    assert.deepEqual(await store.count({ filter: {}, by: [] }), [{ count: 4 }]);
    await store.close();
  });

  test("a connection that ends with its first answer ends no process [K6]", async () => {
    const listener = await greetingAndGone();
    using _ = { [Symbol.dispose]: () => void listener.close() };
    const { port } = listener.address() as AddressInfo;
    const opening = postgres(`postgres://user@127.0.0.1:${port}/x`).open({
      namespace: "n",
      clock: systemClock,
      log: silentLogger,
    });
    await assert.rejects(opening, { code: "store-unavailable" });
  });

  test("wake-ups go on after the listening connection was killed", async () => {
    const schema = newSchema();
    const [listening, sending] = [
      await open({ url: server.url, schema }),
      await open({ url: server.url, schema }),
    ];
    const heard: Notice[] = [];
    const stop = await listening.subscribe((notice) => heard.push(notice));
    await killAll();
    let sent = 0;
    await until("a notice arrives again", async () => {
      sent += 1;
      await patiently(() => sending.enqueue({ jobs: [newJob(`j${sent}`, { queue: `q${sent}` })] }));
      return heard.some((notice) => notice.kind === "jobs" && notice.queues !== null);
    });
    // Whoever was deaf for a while is told that it may have missed anything.
    assert(heard.some((notice) => notice.kind === "jobs" && notice.queues === null));
    await stop();
    await listening.close();
    await sending.close();
  });

  test("a connection that hangs is given up in time and thrown away, and the next call uses another", async () => {
    const schema = newSchema();
    await (await open({ url: server.url, schema })).close();
    await using proxy = await FaultProxy.start(server.url);
    const store = await patiently(() => open({ url: proxy.url, schema, callTimeout: "1s" }));
    await patiently(() => store.enqueue({ jobs: [newJob("before")] }));
    // It lasts far longer than the test may: whoever answers has given up.
    proxy.blackHole(600_000);
    await assert.rejects(store.enqueue({ jobs: [newJob("lost")] }), { code: "store-unavailable" });
    proxy.pass();
    assert.equal((await patiently(() => store.get({ ids: ["before"] })))[0]?.state, "waiting");
    await store.close();
  });

  test("an enqueue whose reply was lost is the same job when it is repeated [C3]", async () => {
    const schema = newSchema();
    const direct = await open({ url: server.url, schema });
    await using proxy = await FaultProxy.start(server.url);
    const store = await open({ url: proxy.url, schema });
    const enqueue = () => store.enqueue({ jobs: [newJob("a")] });
    await loseReply(proxy, enqueue, async () => (await direct.get({ ids: ["a"] }))[0] !== null);
    const [result] = await patiently(enqueue);
    assert.equal(result?.outcome, "existing");
    await store.close();
    await direct.close();
  });

  test("a claim whose reply was lost is answered again with the same jobs, also while the first is under way [A7]", async () => {
    const schema = newSchema();
    const direct = await open({ url: server.url, schema });
    await using proxy = await FaultProxy.start(server.url);
    const names = [{ name: "work", concurrency: null, rate: null }];
    const claim = { claimer: "c", sequence: 1, leaseMs: 30_000, limit: 5, queues: null, names, alone: false };
    const store = await open({ url: proxy.url, schema });
    await store.claim({ ...claim, sequence: 0 });
    await direct.enqueue({ jobs: [newJob("a", { delivery: "at-most-once" })] });
    const claimOnce = () => store.claim(claim);
    const isActive = async () => (await direct.get({ ids: ["a"] }))[0]?.state === "active";
    await loseReply(proxy, claimOnce, isActive);
    const again = await patiently(claimOnce);
    assert.deepEqual(
      again.jobs.map(({ id, token }) => [id, token]),
      [["a", 1]],
    );
    // What a network delivers late is refused once the claimer has gone on.
    await direct.claim({ ...claim, sequence: 2 });
    assert.equal((await direct.claim(claim)).outcome, "stale");
    await store.close();
    await direct.close();
  });

  test("a server that is not there, a wrong password and a read-only server are told apart, without the password", async () => {
    const url = new URL(server.url);
    url.password = "not-the-secret";
    const context = { namespace: "n", clock: systemClock, log: silentLogger };
    const refused = postgres(url.href).open(context);
    await assert.rejects(refused, (error: Error & { code: string }) => {
      assert.equal(error.code, "store-unavailable");
      assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /not-the-secret/);
      return true;
    });
    url.port = "1";
    await assert.rejects(postgres(url.href).open(context), { code: "store-unavailable" });
    const schema = newSchema();
    await (await open({ url: server.url, schema })).close();
    const pool = new pg.Pool({
      connectionString: server.url,
      max: 2,
      options: "-cdefault_transaction_read_only=on",
    });
    const store = await postgres({ pool, schema }).open(context);
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), { code: "store-readonly" });
    await store.close();
    await pool.end();
  });

  test("a lock that somebody holds for long is waited for, and then told", { timeout: 60_000 }, async () => {
    const schema = newSchema();
    const store = await open({ url: server.url, schema });
    await admin.query(`begin; lock table ${schema}.jobs in access exclusive mode`);
    await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), { code: "store-busy" });
    await admin.query("rollback");
    await store.enqueue({ jobs: [newJob("a")] });
    await store.close();
  });
});

describe("the way through PgBouncer", { skip: pooler.skip }, () => {
  test("that it cannot listen is found out, and notices of its own handles still come", async () => {
    const direct = await open({ url: pooler.url, schema: newSchema() });
    assert.equal(direct.capabilities.listen, false);
    const { promise, resolve } = Promise.withResolvers<Notice>();
    const stop = await direct.subscribe(resolve);
    await direct.enqueue({ jobs: [newJob("a")] });
    assert.equal((await promise).kind, "jobs");
    await stop();
    await direct.close();
  });

  test("listening can be insisted on or done without", { skip: server.skip }, async () => {
    const store = await open({ url: server.url, schema: newSchema() });
    const quiet = await open({ url: server.url, schema: newSchema(), listen: false });
    assert.deepEqual([store.capabilities.listen, quiet.capabilities.listen], [true, false]);
    await store.close();
    await quiet.close();
  });
});
