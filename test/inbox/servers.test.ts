import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { Inbox, type InboxStore } from "../../src/inbox/index.ts";
import { systemRuntime } from "../../src/runtime/runtime.ts";
import { mysqlInbox } from "../../src/stores/mysql/index.ts";
import { postgresInbox } from "../../src/stores/postgres/index.ts";
import { redisInbox } from "../../src/stores/redis/index.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { testbed } from "../../testbed/index.ts";

/** An inbox on a server, with effects that are rows of a table where there are transactions. */
interface Bed {
  readonly clock: VirtualClock;
  readonly store: () => InboxStore;
  /** Writes an effect through what the inbox gives. */
  readonly effect: (by: string) => (db: unknown) => Promise<string>;
  readonly effects: () => Promise<string[]>;
  readonly close: () => Promise<void>;
}

const retentionMs = 1_000;

type Queryable = { query(sql: string, values?: unknown[]): Promise<unknown> };

const [postgres, mysql, redis] = [await testbed.postgres(), await testbed.mysql(), await testbed.redis()];

async function postgresBed(): Promise<Bed> {
  const clock = new VirtualClock();
  const pool = new pg.Pool({ connectionString: postgres.url });
  await pool.query("create table if not exists effects (by text); truncate effects");
  await pool.query("drop table if exists escapement_inbox");
  return {
    clock,
    store: () => postgresInbox({ url: postgres.url, clock }),
    effect: (by) => async (db) => {
      await (db as Queryable).query("insert into effects values ($1)", [by]);
      return by;
    },
    effects: async () => (await pool.query("select by from effects")).rows.map((row) => row.by),
    close: () => pool.end(),
  };
}

async function mysqlBed(): Promise<Bed> {
  const clock = new VirtualClock();
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection(mysql.url);
  await connection.query("create table if not exists effects (actor text)");
  await connection.query("truncate effects");
  await connection.query("drop table if exists escapement_inbox");
  return {
    clock,
    store: () => mysqlInbox({ url: mysql.url, clock }),
    effect: (by) => async (db) => {
      await (db as Queryable).query("insert into effects values (?)", [by]);
      return by;
    },
    effects: async () => {
      const [rows] = await connection.query("select actor from effects");
      return (rows as { actor: string }[]).map(({ actor }) => actor);
    },
    close: () => connection.end(),
  };
}

async function redisBed(): Promise<Bed> {
  const clock = new VirtualClock();
  const effects: string[] = [];
  const prefix = `${redis.name}-${Math.random()}`;
  return {
    clock,
    store: () => redisInbox({ url: redis.url, prefix, clock }),
    effect: (by) => async () => {
      effects.push(by);
      return by;
    },
    effects: async () => effects,
    close: async () => {},
  };
}

for (const [name, server, open] of [
  ["Postgres", postgres, postgresBed],
  ["MySQL", mysql, mysqlBed],
  ["Redis", redis, redisBed],
] as const) {
  describe(`the inbox on ${name}`, { skip: server.skip }, () => {
    test("the first copy takes effect, every later one is a duplicate, also when they come at once [B5]", async () => {
      const bed = await open();
      const inboxes = Array.from({ length: 4 }, () => new Inbox({ store: bed.store() }, systemRuntime));
      const outcomes = await Promise.all(
        inboxes.map((inbox, n) => inbox.handle({ key: "k'é\\" }, bed.effect(String(n)))),
      );
      assert.equal(outcomes.filter(({ outcome }) => outcome === "handled").length, 1);
      for (const inbox of inboxes) {
        assert.deepEqual(await inbox.handle({ key: "k'é\\" }, bed.effect("late")), { outcome: "duplicate" });
        await inbox.close();
      }
      assert.equal((await bed.effects()).length, 1);
      await bed.close();
    });

    test("of many copies at once one begins, and the others are told so [B5]", async () => {
      const bed = await open();
      const stores = Array.from({ length: 4 }, () => bed.store());
      for (const store of stores) await store.migrate();
      for (let round = 0; round < 60; round += 1) {
        const begun = await Promise.all(
          stores.map((store, n) =>
            store.begin({ key: `round ${round}`, holder: String(n), leaseMs: 30_000, retentionMs }),
          ),
        );
        assert.equal(begun.filter(({ outcome }) => outcome === "begun").length, 1);
        assert.equal(begun.filter(({ outcome }) => outcome === "running").length, 3);
      }
      for (const store of stores) await store.close();
      await bed.close();
    });

    test("effects that take their time keep no key from being begun or renewed, and none of those that wait is lost [B5]", async () => {
      const bed = await open();
      const store = bed.store();
      await store.migrate();
      const { promise: isDone, resolve: finish } = Promise.withResolvers<void>();
      const keys = Array.from({ length: 12 }, (_, n) => `slow ${n}`);
      const begun = await Promise.all(
        keys.map((key) => store.begin({ key, holder: "one", leaseMs: 30_000, retentionMs })),
      );
      const claims = keys.map((key, n) => ({ key, token: (begun[n] as { token: number }).token }));
      const commits = claims.map((claim) =>
        store.commit({
          ...claim,
          retentionMs,
          run: async (db) => {
            await isDone;
            return bed.effect(claim.key)(db);
          },
        }),
      );
      try {
        for (const claim of claims) assert.equal(await store.extend({ ...claim, leaseMs: 30_000 }), true);
        const another = await store.begin({ key: "quick", holder: "one", leaseMs: 30_000, retentionMs });
        assert.equal(another.outcome, "begun");
      } finally {
        finish();
      }
      for (const { outcome } of await Promise.all(commits)) assert.equal(outcome, "committed");
      assert.deepEqual((await bed.effects()).toSorted(), keys.toSorted());
      await store.close();
      await bed.close();
    });

    test("a key that was released is nobody's: its holder commits and renews nothing more, and the next begins [B5]", async () => {
      const bed = await open();
      const store = bed.store();
      await store.migrate();
      const params = { key: "released", leaseMs: 30_000, retentionMs };
      const begun = await store.begin({ ...params, holder: "one" });
      assert(begun.outcome === "begun");
      const claim = { key: "released", token: begun.token };
      assert.equal(await store.release(claim), true);
      assert.equal(await store.release(claim), false);
      assert.equal(await store.extend({ ...claim, leaseMs: 30_000 }), false);
      assert.equal(await store.finish({ ...claim, retentionMs }), false);
      const late = await store.commit({ ...claim, retentionMs, run: async () => "late" });
      assert.equal(late.outcome, "stale");
      const next = await store.begin({ ...params, holder: "two" });
      assert(next.outcome === "begun" && next.token === begun.token + 1);
      assert.equal(await store.finish({ key: "released", token: next.token, retentionMs }), true);
      assert.equal((await store.begin({ ...params, holder: "three" })).outcome, "done");
      await store.close();
      await bed.close();
    });

    test("effects within an effect wait for no place, and one that waits in vain is told so [B5]", async (context) => {
      if (name === "Redis") return context.skip("it runs effects outside of the server");
      const bed = await open();
      const inbox = new Inbox({ store: bed.store() }, systemRuntime);
      const both = Promise.withResolvers<void>();
      let begun = 0;
      const nested = Array.from({ length: 8 }, (_, n) =>
        inbox.handle({ key: `outer ${n}` }, async (db) => {
          begun += 1;
          if (begun === 8) both.resolve();
          await both.promise;
          await inbox.handle({ key: `inner ${n}` }, bed.effect(`inner ${n}`));
          return bed.effect(`outer ${n}`)(db);
        }),
      );
      for (const { outcome } of await Promise.all(nested)) assert.equal(outcome, "handled");
      assert.equal((await bed.effects()).length, 16);
      await inbox.close();
      await bed.close();
    });

    test("an effect that ends its transaction itself and goes on is not taken for done [B5]", async (context) => {
      if (name === "Redis") return context.skip("it has no transactions");
      const bed = await open();
      const inbox = new Inbox({ store: bed.store() }, systemRuntime);
      const effect = async (db: unknown): Promise<string> => {
        await (db as Queryable).query("rollback");
        return bed.effect("half")(db);
      };
      await assert.rejects(inbox.handle({ key: "ended" }, effect), { code: "transaction-used" });
      const left = await bed.effects();
      // On Postgres what comes after is committed by the server itself.
      assert.deepEqual(left, name === "Postgres" ? ["half"] : []);
      assert.equal((await inbox.handle({ key: "ended" }, bed.effect("whole"))).outcome, "handled");
      await inbox.close();
      await bed.close();
    });

    test("a copy that holds the key keeps others out until its lease is over; a late one is stale [B5]", async () => {
      const bed = await open();
      const [dead, other] = [bed.store(), bed.store()];
      await dead.migrate();
      const begun = await dead.begin({ key: "k", holder: "dead", leaseMs: 30_000, retentionMs });
      assert.deepEqual(begun, { outcome: "begun", token: 1 });
      assert.deepEqual(
        await dead.begin({ key: "k", holder: "dead", leaseMs: 30_000, retentionMs }),
        begun,
        "a lost reply",
      );
      const busy = await other.begin({ key: "k", holder: "other", leaseMs: 30_000, retentionMs });
      assert.deepEqual(busy, { outcome: "running", retryInMs: 30_000 });
      assert.equal(await dead.extend({ key: "k", token: 1, leaseMs: 60_000 }), true);
      await bed.clock.advance(60_001);
      assert.deepEqual(await other.begin({ key: "k", holder: "other", leaseMs: 30_000, retentionMs }), {
        outcome: "begun",
        token: 2,
      });
      assert.equal(await dead.extend({ key: "k", token: 1, leaseMs: 60_000 }), false);
      const commit = { key: "k", retentionMs: 1_000 };
      if (dead.atomic) {
        assert.deepEqual(await dead.commit({ ...commit, token: 1, run: bed.effect("zombie") }), {
          outcome: "stale",
        });
      }
      assert.equal(
        (await other.commit({ ...commit, token: 2, run: bed.effect("other") })).outcome,
        "committed",
      );
      assert.deepEqual(await bed.effects(), ["other"]);
      assert.deepEqual(await dead.begin({ key: "k", holder: "third", leaseMs: 1, retentionMs }), {
        outcome: "done",
      });
      await bed.clock.advance(1_001);
      if (dead.atomic) assert.equal(await dead.prune({ limit: 10, retentionMs }), 1);
      await Promise.all([dead.close(), other.close(), bed.close()]);
    });

    test("an effect that throws is undone where it can be, and the next copy may try at once [B5]", async () => {
      const bed = await open();
      await using inbox = new Inbox({ store: bed.store() }, systemRuntime);
      const failing = inbox.handle({ key: "k" }, async (db) => {
        if (inbox.atomic) await bed.effect("failed")(db);
        throw new Error("no");
      });
      await assert.rejects(failing, { message: "no" });
      assert.equal((await inbox.handle({ key: "k" }, bed.effect("second"))).outcome, "handled");
      assert.deepEqual(await bed.effects(), ["second"]);
      await bed.close();
    });
  });
}
