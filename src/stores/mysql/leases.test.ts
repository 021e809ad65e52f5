import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { testbed } from "../../../testbed/index.ts";
import type { ClaimRef } from "../../store/claims.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { open } from "./test/harness.ts";

const server = await testbed.mysql();

async function claimAll(store: Store, ids: readonly string[]): Promise<ClaimRef[]> {
  await store.enqueue({ jobs: ids.map((id) => newJob(id)) });
  const names = [{ name: "work", concurrency: null, rate: null }];
  const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: true };
  const { jobs } = await store.claim({ claimer: "n", sequence: 1, ...params });
  assert.deepEqual(jobs.map(({ id }) => id).toSorted(), ids.toSorted());
  return ids.map((id) => ({ id, token: 1 }));
}

describe("leases on MySQL", { skip: server.skip }, () => {
  test("a row that another transaction has locked holds up no renewal but its own [K6]", async (t) => {
    const store = await open({ url: server.url }, "locked rows");
    const other = await createConnection(server.url);
    t.after(async () => {
      await other.end();
      await store.close();
    });
    const claims = await claimAll(store, ["a", "b", "c"]);
    const extend = () =>
      store.extend({ claimer: "n", leaseMs: 60_000, claims: [...claims, { id: "none", token: 1 }] });
    const outcomes = async (): Promise<string[]> => (await extend()).map(({ outcome }) => outcome);
    const [rows] = await other.query<RowDataPacket[]>("select ns, seq from escapement_jobs where id = 'b'");
    const [{ ns, seq } = {} as RowDataPacket] = rows;
    const locks = [
      `select * from escapement_jobs where ns = ${ns} and id = 'b' for update`,
      `update escapement_jobs set at = at - 1 where seq = ${seq}`,
    ];
    for (const lock of locks) {
      await other.beginTransaction();
      await other.query(lock);
      assert.deepEqual(await outcomes(), ["extended", "locked", "extended", "stale"]);
      await other.rollback();
      assert.deepEqual(await outcomes(), ["extended", "extended", "extended", "stale"]);
    }
  });

  test("a job whose queue and name somebody else has changed is reaped with the others", async (t) => {
    const store = await open({ url: server.url }, "changed names");
    const other = await createConnection(server.url);
    t.after(async () => {
      await other.end();
      await store.close();
    });
    await claimAll(store, ["changed", "renamed", "healthy"]);
    const over = "update escapement_jobs set at = 1";
    await other.query(`${over}, name = '' where id = 'changed'`);
    await other.query(`${over}, queue = 'elsewhere' where id = 'renamed'`);
    await other.query(`${over} where id = 'healthy'`);
    const { reaped } = await store.reap({ limit: 10 });
    assert.deepEqual(
      reaped.map(({ id, state }) => [id, state]).toSorted(),
      ["changed", "healthy", "renamed"].map((id) => [id, "waiting"]),
    );
  });
});
