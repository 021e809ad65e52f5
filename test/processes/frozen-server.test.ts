import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createEscapement, defineJob, type StoreFactory } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { mysql } from "../../src/stores/mysql/index.ts";
import { postgres } from "../../src/stores/postgres/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { testbed } from "../../testbed/index.ts";
import { isFull } from "../full.ts";

// Half of it is what a busy machine has to renew in after the server is back.
const leaseMs = 10_000;
const patienceMs = 60_000;

const kinds = {
  postgres: { bed: testbed.postgres, store: (url: string): StoreFactory => postgres({ url }) },
  mysql: { bed: testbed.mysql, store: (url: string): StoreFactory => mysql({ url }) },
  redis: { bed: testbed.redis, store: (url: string): StoreFactory => redis({ url }) },
} as const;

const servers = await Promise.all(
  Object.entries(kinds).map(async ([name, { bed, store }]) => ({
    name,
    store,
    server: isFull ? await bed({ private: true }) : null,
  })),
);

describe("a server that stops answering for more than a lease", { concurrency: true }, () => {
  for (const { name, store, server } of servers) {
    const skip = server === null ? "only with ESCAPEMENT_TESTS=full" : server.skip;
    test(`${name}: nothing that a living process holds runs again`, { skip }, async (t) => {
      assert(server !== null);
      const starts: string[] = [];
      const gate = Promise.withResolvers<void>();
      const define = (name: string, delivery: "at-least-once" | "at-most-once") =>
        defineJob<number>({
          name,
          delivery,
          run: async ({ job: { id }, input }) => {
            starts.push(id);
            // Some come to their end while nobody answers, the others afterwards.
            await (input % 2 === 0 ? delay(leaseMs / 2) : gate.promise);
          },
        });
      const job = define("held", "at-least-once");
      // If anybody took its holder for dead, it would be lost.
      const once = define("held once", "at-most-once");
      const open = () =>
        createEscapement({
          store: store(server.url),
          jobs: [job, once],
          lease: leaseMs,
          concurrency: 10,
          log: silentLogger,
        });
      const nodes = [open(), open()];
      t.after(() => Promise.all(nodes.map((node) => node.stop())));
      const [client] = nodes;
      assert(client !== undefined);
      for (let n = 0; n < 10; n += 1) await client.enqueue(n < 5 ? job : once, n);
      await Promise.all(nodes.map((node) => node.start()));
      await until("all have started", () => starts.length === 10);
      await server.pause();
      await delay(2 * leaseMs);
      await server.resume();
      await delay(leaseMs);
      gate.resolve();
      await until(
        "all have ended",
        async () => (await client.count({ states: ["waiting", "active"] })) === 0,
      );
      const ends = await Promise.all([...new Set(starts)].map((id) => client.get(id)));
      assert.deepEqual(
        ends.map((end) => [end?.state, end?.crashes]),
        Array(10).fill(["succeeded", 0]),
      );
      assert.equal(starts.length, 10, "none ran again");
    });
  }
});

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const giveUp = Date.now() + patienceMs; Date.now() < giveUp; await delay(50)) {
    if (await Promise.resolve(holds()).catch(() => false)) return;
  }
  assert.fail(`expected within ${patienceMs} ms: ${what}`);
}
