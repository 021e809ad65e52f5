import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { newPrefix, open } from "./test/harness.ts";

const server = await testbed.mysql();

describe("effectively once on MySQL", { skip: server.skip }, () => {
  let store: Store;
  let reader: Connection;
  before(async () => {
    store = await open({ url: server.url, connections: 4 }, "effects");
    reader = await createConnection(server.url);
    await reader.query("create table effects (job varchar(100))");
  });
  after(async () => {
    await reader.end();
    await store.close();
  });

  const claim = async (id: string, sequence: number) => {
    await store.enqueue({ jobs: [newJob(id, { delivery: "effectively-once" })] });
    const names = [{ name: "work", concurrency: null, rate: null }];
    const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: true };
    const { jobs } = await store.claim({ claimer: "n", sequence, ...params });
    const token = jobs.find((job) => job.id === id)?.token ?? 0;
    return {
      claimer: "n",
      id,
      token,
      encode: (value: unknown) => ({ kind: "succeed" as const, result: JSON.stringify(value ?? null) }),
    };
  };
  const write = (id: string) => async (tx: unknown) => {
    await (tx as Connection).query("insert into effects values (?)", [id]);
    return "done";
  };
  const effects = async (id: string): Promise<number> =>
    (await reader.query<RowDataPacket[]>("select 1 from effects where job = ?", [id]))[0].length;

  test("the handle is a connection of mysql2, and its writes commit with the job's success", async () => {
    const held = await claim("a", 1);
    assert.equal((await store.transact({ ...held, run: write("a") })).outcome, "committed");
    assert.deepEqual([await effects("a"), (await store.get({ ids: ["a"] }))[0]?.state], [1, "succeeded"]);
    assert.deepEqual(await store.transact({ ...held, run: write("a") }), { outcome: "stale" });
    assert.equal(await effects("a"), 1);
  });

  test("a claim that ends while its transaction is open takes the writes with it [A7]", async () => {
    const held = await claim("b", 2);
    const run = async (tx: unknown): Promise<string> => {
      await write("b")(tx);
      const { id, token } = held;
      await store.finish({ claimer: "n", finishes: [{ id, token, outcome: { kind: "release" } }] });
      return "done";
    };
    assert.deepEqual(await store.transact({ ...held, run }), { outcome: "stale" });
    assert.deepEqual([await effects("b"), (await store.get({ ids: ["b"] }))[0]?.state], [0, "waiting"]);
  });

  test("a function that ends the transaction itself is refused, and the job stays as it was", async () => {
    const held = await claim("c", 3);
    const run = async (tx: unknown): Promise<void> => (tx as Connection).rollback();
    await assert.rejects(store.transact({ ...held, run }), { code: "transaction-used" });
    assert.equal((await store.get({ ids: ["c"] }))[0]?.state, "active");
  });

  test("the lease is renewed while the transaction is open, and its handle is of no use afterwards", async () => {
    const held = await claim("d", 4);
    let kept: unknown;
    const run = async (tx: unknown): Promise<void> => {
      kept = tx;
      await write("d")(tx);
      const [extended] = await store.extend({ claimer: "n", leaseMs: 30_000, claims: [held] });
      assert.equal(extended?.outcome, "extended");
    };
    assert.equal((await store.transact({ ...held, run })).outcome, "committed");
    assert.throws(() => (kept as Connection).query("select 1"), { code: "transaction-used" });
    await assert.rejects(store.enqueue({ jobs: [newJob("late")], tx: kept }), { code: "transaction-used" });
  });

  test("more transactions than connections wait for each other, and other calls go on", async () => {
    const names = [{ name: "many", concurrency: null, rate: null }];
    const ids = Array.from({ length: 30 }, (_, n) => `many-${n}`);
    await store.enqueue({ jobs: ids.map((id) => newJob(id, { name: "many" })) });
    const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: false };
    const { jobs } = await store.claim({ claimer: "n", sequence: 5, ...params });
    const run = async (tx: unknown): Promise<void> => {
      await store.health();
      await store.enqueue({
        jobs: [newJob(`new queue ${Math.random()}`, { queue: `q${Math.random()}` })],
        tx,
      });
      await write("many")(tx);
    };
    const results = await Promise.all(
      jobs.map(({ id, token }) =>
        store.transact({ claimer: "n", id, token, run, encode: () => ({ kind: "succeed", result: null }) }),
      ),
    );
    assert.deepEqual(new Set(results.map(({ outcome }) => outcome)), new Set(["committed"]));
    assert.equal(await effects("many"), 30);
  });

  test("a function that goes on after a deadlock has undone its transaction leaves nothing, and is told of the deadlock", async () => {
    const held = await claim("z", 100);
    const rival = await createConnection(server.url);
    await reader.query("create table if not exists accounts (id int primary key, cents int)");
    const ids = Array.from({ length: 500 }, (_, n) => [n + 1, 0]);
    await reader.query("replace into accounts values ?", [ids]);
    const add = (id: number) => `update accounts set cents = cents + 1 where id = ${id}`;
    const run = async (tx: unknown): Promise<string> => {
      const own = tx as Connection;
      await write("z")(own);
      await own.query(add(1));
      await rival.beginTransaction();
      // It has changed more, so that the other one is undone.
      await rival.query("update accounts set cents = cents + 1 where id > 2");
      await rival.query(add(2));
      const theirs = rival.query(add(1));
      for (let isWaiting = false; !isWaiting; ) {
        const [rows] = await reader.query<RowDataPacket[]>("show processlist");
        isWaiting = rows.some(({ Info }) => Info === add(1));
      }
      await assert.rejects(own.query(add(2)), { code: "ER_LOCK_DEADLOCK" });
      await theirs;
      await rival.commit();
      await own.query(add(2));
      return "done";
    };
    await assert.rejects(store.transact({ ...held, run }), { code: "store-busy" });
    const [rows] = await reader.query<RowDataPacket[]>(
      "select cents from accounts where id <= 2 order by id",
    );
    assert.deepEqual(
      rows.map(({ cents }) => cents),
      [1, 1],
      "only the rival's",
    );
    assert.deepEqual([await effects("z"), (await store.get({ ids: ["z"] }))[0]?.state], [0, "active"]);
    await rival.end();
    // The connection goes back as it was: what is written on it afterwards commits.
    const next = await claim("y", 101);
    assert.equal((await store.transact({ ...next, run: write("y") })).outcome, "committed");
    for (const id of ["v", "w"]) await store.enqueue({ jobs: [newJob(id)] });
    assert.equal((await store.get({ ids: ["v", "w"] })).filter((job) => job !== null).length, 2);
  });

  test("a second set of tables beside the first knows nothing of it", async () => {
    const other = await open({ url: server.url, tablePrefix: newPrefix() }, "effects");
    assert.deepEqual(await other.count({ filter: {}, by: [] }), [{ count: 0 }]);
    await other.close();
  });
});
