import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { testbed } from "../../../testbed/index.ts";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { until } from "../../testing/until.ts";
import { postgres } from "./index.ts";
import { newSchema } from "./test/harness.ts";

const server = await testbed.postgres();

describe("plain jobs on Postgres", { skip: server.skip }, () => {
  test("their rows are written once: claims and successes change none of them [A2]", async (context) => {
    const schema = newSchema();
    const store = await postgres({ url: server.url, schema }).open({
      namespace: "n",
      clock: systemClock,
      log: silentLogger,
    });
    context.after(() => store.close());
    await store.migrate();
    await store.enqueue({ jobs: Array.from({ length: 1_000 }, (_, n) => newJob(`j-${n}`)) });
    const { jobs } = await store.claim({
      claimer: "c",
      sequence: 1,
      leaseMs: 60_000,
      limit: 10,
      ahead: 990,
      queues: null,
      names: [{ name: "work", concurrency: null, rate: null }],
      alone: false,
    });
    assert.equal(jobs.length, 1_000);
    const finishes = jobs.map(({ id, token }) => ({
      id,
      token,
      outcome: { kind: "succeed", result: "1" } as const,
    }));
    await store.finish({ claimer: "c", finishes });
    const admin = new pg.Client(server.url);
    await admin.connect();
    context.after(() => admin.end());
    const written = async (table: string): Promise<{ added: number; changed: number; gone: number }> => {
      const { rows } = await admin.query(
        `select n_tup_ins::integer as added, n_tup_upd::integer as changed, n_tup_del::integer as gone
         from pg_stat_all_tables where relid = $1::regclass`,
        [`${schema}.${table}`],
      );
      return rows[0];
    };
    // A session tells its counts when it ends, and otherwise when it finds the time.
    await store.close();
    await until("they are counted", async () => (await written("ended")).added === 1_000);
    assert.deepEqual(await written("jobs"), { added: 1_000, changed: 0, gone: 0 });
    assert.deepEqual(await written("active"), { added: 1_000, changed: 0, gone: 1_000 });
  });
});
