import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { ClaimRef } from "../../store/claims.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { postgres } from "./index.ts";

const server = await testbed.postgres();

async function open(namespace: string): Promise<Store> {
  const store = await postgres(server.url).open({ namespace, clock: systemClock, log: silentLogger });
  await store.migrate();
  return store;
}

async function claimAll(store: Store, ids: readonly string[]): Promise<ClaimRef[]> {
  await store.enqueue({ jobs: ids.map((id) => newJob(id)) });
  const names = [{ name: "work", concurrency: null, rate: null }];
  const params = { leaseMs: 30_000, limit: 100, queues: null, names, alone: true };
  const { jobs } = await store.claim({ claimer: "n", sequence: 1, ...params });
  assert.deepEqual(jobs.map(({ id }) => id).toSorted(), ids.toSorted());
  return ids.map((id) => ({ id, token: 1 }));
}

describe("leases on Postgres", { skip: server.skip }, () => {
  test("a row that another transaction has locked holds up no renewal but its own [K6]", async (t) => {
    const store = await open("locked rows");
    const other = new pg.Client(server.url);
    await other.connect();
    t.after(async () => {
      await other.end();
      await store.close();
    });
    const claims = await claimAll(store, ["a", "b", "c"]);
    await other.query("begin");
    await other.query(
      "delete from escapement.active where seq = (select seq from escapement.jobs where id = 'b')",
    );
    await other.query("select from escapement.jobs where id = 'c' for update");
    const extend = () =>
      store.extend({ claimer: "n", leaseMs: 60_000, claims: [...claims, { id: "none", token: 1 }] });
    const outcomes = async (): Promise<string[]> => (await extend()).map(({ outcome }) => outcome);
    assert.deepEqual(await outcomes(), ["extended", "locked", "extended", "stale"]);
    await other.query("rollback");
    assert.deepEqual(await outcomes(), ["extended", "extended", "extended", "stale"]);
  });
});
