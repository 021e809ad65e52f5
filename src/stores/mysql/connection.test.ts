import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createPool } from "mysql2";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import { type Clock, systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { FaultProxy } from "../../proof/proxy.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { loseReply } from "../../testing/lost-reply.ts";
import { patiently, until } from "../../testing/until.ts";
import { targetOf } from "./connection/client.ts";
import { OwnPool } from "./connection/pool.ts";
import { mysql } from "./index.ts";
import { newPrefix, open } from "./test/harness.ts";
import { kill, otherConnections } from "./test/other-connections.ts";

const server = await testbed.mysql();
const names = [{ name: "work", concurrency: null, rate: null }];
const claim = { claimer: "c", sequence: 1, leaseMs: 30_000, limit: 5, queues: null, names, alone: false };

describe("the way to MySQL", { skip: server.skip }, () => {
  let admin: Connection;
  before(async () => {
    admin = await createConnection({ uri: server.url, multipleStatements: true });
  });
  after(() => admin.end());

  const killAll = async (): Promise<void> => {
    for (const id of await otherConnections(admin)) await kill(admin, id);
  };

  test("a claimer that falls silent in the middle of its claim does not keep everybody else from theirs [A7]", async (t) => {
    const tablePrefix = newPrefix();
    await using proxy = await FaultProxy.start(server.url);
    const silent = await open({ url: proxy.url, tablePrefix });
    const other = await open({ url: server.url, tablePrefix });
    if (!(await other.health()).engine.startsWith("MariaDB"))
      return t.skip("MySQL has no limit for idle transactions");
    const keyed = ["a", "b"].map((id) => newJob(id, { concurrencyKey: id }));
    await silent.enqueue({ jobs: keyed });
    const keyedNames = [{ name: "work", concurrency: 1, rate: null }];
    // Slow trips, so that the claim is still in the middle of them when the network goes away.
    proxy.delay(100);
    silent.claim({ ...claim, claimer: "silent", names: keyedNames }).catch(() => {});
    await until("the claim holds the namespace", () =>
      admin.query(`select ns from ${tablePrefix}namespaces for update nowait`).then(
        () => false,
        () => true,
      ),
    );
    proxy.blackHole(60_000);
    const { jobs } = await patiently(() => other.claim({ ...claim, names: keyedNames }));
    assert.equal(jobs.length, 2);
    await proxy.stop();
    await silent.close();
    await other.close();
  });

  test("killed connections are replaced, idle ones without anybody noticing [K6]", async () => {
    const store = await open({ url: server.url, tablePrefix: newPrefix() });
    await store.enqueue({ jobs: [newJob("before")] });
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(Array.from({ length: 5 }, () => store.count({ filter: {}, by: [] })));
      await killAll();
      await store.enqueue({ jobs: [newJob(`after ${round}`)] });
    }
    assert.deepEqual(await store.count({ filter: {}, by: [] }), [{ count: 4 }]);
    await store.close();
  });

  test("a connection that is killed in the middle of a call is replaced, also a new one [K6]", async (t) => {
    const tablePrefix = newPrefix();
    const store = await open({ url: server.url, tablePrefix });
    t.after(() => store.close());
    await store.enqueue({ jobs: [newJob("a", { concurrencyKey: "a" })] });
    const holder = await createConnection(server.url);
    t.after(() => holder.destroy());
    await holder.query("begin");
    await holder.query(`select ns from ${tablePrefix}namespaces for update`);
    const claimed = store.claim({ ...claim, names: [{ name: "work", concurrency: 1, rate: null }] });
    // The second one has never been used before.
    const killed = new Set<number>();
    await until("the claim waits on a second connection", async () => {
      for (const id of await otherConnections(admin, `${tablePrefix}namespaces`)) {
        // The server lists a killed connection for a moment, and may have forgotten it by the next query.
        if (!killed.has(id)) await kill(admin, id);
        killed.add(id);
      }
      return killed.size >= 2;
    });
    await holder.end();
    assert.deepEqual(
      (await claimed).jobs.map(({ id }) => id),
      ["a"],
    );
  });

  test("a connection that hangs is given up in time and thrown away, and the next call uses another", async () => {
    const tablePrefix = newPrefix();
    await (await open({ url: server.url, tablePrefix })).close();
    await using proxy = await FaultProxy.start(server.url);
    const store = await patiently(() => open({ url: proxy.url, tablePrefix, callTimeout: 1_000 }));
    await patiently(() => store.enqueue({ jobs: [newJob("before")] }));
    // It lasts far longer than the test may: whoever answers has given up.
    proxy.blackHole(600_000);
    await assert.rejects(store.enqueue({ jobs: [newJob("lost")] }), { code: "store-unavailable" });
    proxy.pass();
    assert.equal((await patiently(() => store.get({ ids: ["before"] })))[0]?.state, "waiting");
    await store.close();
  });

  test("an enqueue whose reply was lost is the same job when it is repeated [C3]", async () => {
    const tablePrefix = newPrefix();
    const direct = await open({ url: server.url, tablePrefix });
    await using proxy = await FaultProxy.start(server.url);
    const store = await open({ url: proxy.url, tablePrefix });
    await store.enqueue({ jobs: [newJob("warm")] });
    const enqueue = () => store.enqueue({ jobs: [newJob("a")] });
    await loseReply(proxy, enqueue, async () => (await direct.get({ ids: ["a"] }))[0] !== null);
    const [result] = await patiently(enqueue);
    assert.equal(result?.outcome, "existing");
    await store.close();
    await direct.close();
  });

  test("jobs with a lane and an expiry whose enqueue lost its reply with the connection are there once [C3]", async () => {
    const tablePrefix = newPrefix();
    await using proxy = await FaultProxy.start(server.url);
    const store = await open({ url: proxy.url, tablePrefix });
    const jobs = ["a", "b"].map((id) => newJob(id, { concurrencyKey: "k", expireInMs: 60_000 }));
    await store.enqueue({ jobs: [newJob("warm", { concurrencyKey: "k" })] });
    const rowsOf = async (table: string): Promise<number> => {
      const [rows] = await admin.query<RowDataPacket[]>(`select 1 from ${tablePrefix}${table}`);
      return rows.length;
    };
    proxy.dropReplies(60_000);
    const enqueued = store.enqueue({ jobs });
    await until("they are committed", async () => (await rowsOf("jobs")) === 3);
    proxy.cut();
    assert.deepEqual(
      (await enqueued).map(({ outcome }) => outcome),
      ["added", "added"],
    );
    assert.deepEqual([await rowsOf("jobs"), await rowsOf("lane_jobs"), await rowsOf("expiring")], [3, 3, 2]);
    await store.close();
  });

  test("a claim whose reply was lost is answered again with the same jobs [A7]", async () => {
    const tablePrefix = newPrefix();
    const direct = await open({ url: server.url, tablePrefix });
    await using proxy = await FaultProxy.start(server.url);
    const store = await patiently(() => open({ url: proxy.url, tablePrefix, callTimeout: 1_000 }));
    await patiently(() => store.claim({ ...claim, sequence: 0 }));
    await direct.enqueue({ jobs: [newJob("a", { delivery: "at-most-once" })] });
    // A claim here takes several trips, so nobody knows which of them was the last to arrive.
    proxy.dropReplies(600_000);
    await assert.rejects(store.claim(claim), { code: "store-unavailable" });
    proxy.pass();
    const again = await patiently(() => store.claim(claim));
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

  test("a server that is not there and a wrong password are told apart, without the password", async () => {
    const url = new URL(server.url);
    url.password = "not-the-secret";
    const context = { namespace: "n", clock: systemClock, log: silentLogger };
    await assert.rejects(mysql(url.href).open(context), (error: Error & { code: string }) => {
      assert.equal(error.code, "store-unavailable");
      assert.match(error.message, /password/);
      assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /not-the-secret/);
      return true;
    });
    url.port = "1";
    await assert.rejects(mysql(url.href).open(context), {
      code: "store-unavailable",
      message: /server runs/,
    });
  });

  test("rights that are missing are told as such, and nothing is written", async () => {
    const tablePrefix = newPrefix();
    await (await open({ url: server.url, tablePrefix })).close();
    const user = tablePrefix.slice(0, 12);
    await admin.query(`create user '${user}'@'%' identified by 'p'; grant select on *.* to '${user}'@'%'`);
    const url = new URL(server.url);
    [url.username, url.password] = [user, "p"];
    const context = { namespace: "n", clock: systemClock, log: silentLogger };
    await assert.rejects(mysql({ url: url.href, tablePrefix }).open(context), { code: "store-readonly" });
    await admin.query(`drop user '${user}'@'%'`);
  });

  test("a lock that somebody holds for long is waited for, and then told", async () => {
    const tablePrefix = newPrefix();
    const store = await patiently(() => open({ url: server.url, tablePrefix, callTimeout: 12_000 }));
    await patiently(() => store.enqueue({ jobs: [newJob("a")] }));
    await admin.query(`start transaction; select * from ${tablePrefix}jobs where id = 'a' for update`);
    await assert.rejects(store.update({ id: "a", priority: 1 }), { code: "store-busy" });
    await admin.query("rollback");
    assert.equal((await patiently(() => store.update({ id: "a", priority: 1 }))).outcome, "updated");
    await store.close();
  });

  test("a caller's pool is used as it is, and stays open", async (t) => {
    const pool = createPool({ uri: server.url, connectionLimit: 4, multipleStatements: true });
    t.after(() => pool.promise().end());
    const store = await open({ pool, tablePrefix: newPrefix() });
    assert.equal(store.address, null);
    await store.enqueue({ jobs: [newJob("it's \\ here")] });
    assert.deepEqual(
      (await store.claim(claim)).jobs.map(({ id }) => id),
      ["it's \\ here"],
    );
    await store.close();
    // MySQL 8 dropped the one name, MariaDB 10 does not know the other.
    const [rows] = await pool
      .promise()
      .query<RowDataPacket[]>(
        "show variables where variable_name in ('transaction_isolation', 'tx_isolation')",
      );
    assert.equal(rows[0]?.["Value"], "REPEATABLE-READ", "its settings are left alone");
  });
});

describe("the pool of MySQL's connections", { skip: server.skip }, () => {
  test("a connection that is ready only when whoever waited for it has gone serves the next", async () => {
    await using proxy = await FaultProxy.start(server.url);
    const timeoutMs = 6_000;
    const pool = new OwnPool({ target: targetOf(proxy.url), size: 1, tablePrefix: "", timeoutMs });
    const first = await pool.borrow();
    const given = (borrowing: Promise<{ release(): void }>) =>
      borrowing.then(
        (borrowed) => {
          borrowed.release();
          return "given";
        },
        ({ code }) => code,
      );
    const impatient = given(pool.borrow());
    await new Promise((resolve) => setTimeout(resolve, timeoutMs - 200));
    const patient = given(pool.borrow());
    // A new connection takes several trips, and the impatient one has 200 ms left.
    proxy.delay(100);
    first.discard();
    assert.deepEqual([await impatient, await patient], ["store-busy", "given"]);
    assert.equal(await given(pool.borrow()), "given");
    await pool.close();
  });
});

describe("a caller's pool whose connections are all in transactions", { skip: server.skip }, () => {
  test("enqueues in them are told in time, and what comes late goes back to the pool", async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 2 });
    const tablePrefix = newPrefix();
    const store = await patiently(() => open({ pool, tablePrefix, callTimeout: 1_000 }));
    await patiently(() => store.enqueue({ jobs: [newJob("warm")] }));
    const held = [await pool.promise().getConnection(), await pool.promise().getConnection()];
    for (const connection of held) await connection.beginTransaction();
    const results = await Promise.allSettled(
      held.map((tx, n) => store.enqueue({ jobs: [newJob(`in ${n}`)], tx })),
    );
    for (const result of results) {
      assert(result.status === "rejected");
      assert.equal(result.reason.code, "store-busy");
      assert.match(result.reason.message, /connectionLimit/);
    }
    for (const connection of held) {
      await connection.rollback();
      connection.release();
    }
    const again = [await pool.promise().getConnection(), await pool.promise().getConnection()];
    for (const connection of again) connection.release();
    await patiently(() => store.enqueue({ jobs: [newJob("after")] }));
    await store.close();
    await pool.promise().end();
  });
});

/** A node whose clock is off. */
function off(ms: number): Clock {
  return { ...systemClock, now: () => systemClock.now() + ms };
}

describe("the clock of MySQL", { skip: server.skip }, () => {
  const openOff = async (ms: number, tablePrefix: string): Promise<Store> => {
    const store = await mysql({ url: server.url, tablePrefix }).open({
      namespace: "n",
      clock: off(ms),
      log: silentLogger,
    });
    await store.migrate();
    return store;
  };

  test("nodes whose clocks are off by five minutes neither fire early nor twice [K1]", async () => {
    const tablePrefix = newPrefix();
    const [slow, fast] = [await openOff(-300_000, tablePrefix), await openOff(300_000, tablePrefix)];
    await slow.enqueue({ jobs: [newJob("a", { delayMs: 1_500, delivery: "at-most-once" })] });
    const [job] = await fast.get({ ids: ["a"] });
    const runAt = job?.runAt.getTime() ?? 0;
    const taken: number[] = [];
    let sequence = 0;
    await until("somebody gets the job", async () => {
      sequence += 1;
      const answers = await Promise.all([
        slow.claim({ ...claim, claimer: "slow", sequence }),
        fast.claim({ ...claim, claimer: "fast", sequence }),
      ]);
      for (const { jobs, now } of answers) if (jobs.length > 0) taken.push(now.getTime());
      return taken.length > 0;
    });
    assert.equal(taken.length, 1);
    assert((taken[0] ?? 0) >= runAt, "it fired early");
    await slow.close();
    await fast.close();
  });

  test("leases run out by the server's clock [C2]", async () => {
    const tablePrefix = newPrefix();
    const [slow, fast] = [await openOff(-300_000, tablePrefix), await openOff(300_000, tablePrefix)];
    await slow.enqueue({ jobs: [newJob("a")] });
    const { now } = await slow.claim({ ...claim, leaseMs: 1_500 });
    await until("the lease has run out", async () => (await fast.reap({ limit: 10 })).reaped.length === 1);
    const since = (await fast.health()).now.getTime() - now.getTime();
    assert(since >= 1_500, `it ran out after ${since} ms`);
    await slow.close();
    await fast.close();
  });
});
