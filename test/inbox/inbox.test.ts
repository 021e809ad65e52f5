import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { Duration } from "../../src/duration.ts";
import { createInbox, Inbox } from "../../src/inbox/index.ts";
import { type AnyDefinition, createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { systemRuntime } from "../../src/runtime/runtime.ts";
import type { StoreFactory } from "../../src/store/opening.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { sqliteInbox } from "../../src/stores/sqlite/index.ts";
import { VirtualClock } from "../../src/testing/virtual-clock.ts";
import { newFolder } from "../behaviour/stores.ts";

/** An inbox whose effects are rows of a table beside its markers, on a clock that the test moves. */
function bed() {
  const clock = new VirtualClock();
  const path = join(newFolder(), "inbox.db");
  const open = (): Inbox =>
    new Inbox({ store: sqliteInbox({ path, clock }), lease: "30s" }, { ...systemRuntime, clock });
  const database = new DatabaseSync(path, { timeout: 5_000 });
  database.exec("create table effects (key text, by text)");
  return {
    clock,
    path,
    open,
    effects: () =>
      database
        .prepare("select by from effects")
        .all()
        .map((row) => row["by"]),
  };
}

const retentionMs = 1_000;

const insert = (by: string) => (db: DatabaseSync) => {
  db.prepare("insert into effects values ('k', ?)").run(by);
  return by;
};

/** On SQLite everything is synchronous once it runs, so time is moved between the steps of a call. */
async function settled<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let done = false;
  promise.finally(() => (done = true)).catch(() => {});
  while (!done) await clock.settle();
  return promise;
}

describe("the inbox", () => {
  test("the first copy takes effect, every later one is a duplicate [B5]", async () => {
    const { clock, open, effects } = bed();
    const [a, b] = [open(), open()];
    assert.deepEqual(await settled(clock, a.handle({ key: "k" }, insert("a"))), {
      outcome: "handled",
      value: "a",
    });
    assert.deepEqual(await settled(clock, b.handle({ key: "k" }, insert("b"))), { outcome: "duplicate" });
    assert.deepEqual(await settled(clock, a.handle({ key: "other" }, insert("c"))), {
      outcome: "handled",
      value: "c",
    });
    assert.deepEqual(effects(), ["a", "c"]);
    await Promise.all([a.close(), b.close()]);
  });

  test("an effect that throws is undone with its marker, and the next copy may try at once [B5]", async () => {
    const { clock, open, effects } = bed();
    const inbox = open();
    const failing = inbox.handle({ key: "k" }, (db: DatabaseSync) => {
      insert("failed")(db);
      throw new Error("no");
    });
    await assert.rejects(settled(clock, failing), { message: "no" });
    assert.deepEqual(effects(), []);
    assert.equal((await settled(clock, inbox.handle({ key: "k" }, insert("second")))).outcome, "handled");
    assert.deepEqual(effects(), ["second"]);
    await inbox.close();
  });

  test("a second copy does not start while the first holds its lease, and takes over when that has run out [B5]", async () => {
    const { clock, path, open, effects } = bed();
    // A holder that began and then died: what a killed consumer leaves behind.
    const dead = sqliteInbox({ path, clock });
    await settled(clock, dead.migrate());
    const begun = await settled(
      clock,
      dead.begin({ key: "k", holder: "dead", leaseMs: 30_000, retentionMs }),
    );
    assert.deepEqual(begun, { outcome: "begun", token: 1 });
    const again = await settled(
      clock,
      dead.begin({ key: "k", holder: "dead", leaseMs: 30_000, retentionMs }),
    );
    assert.deepEqual(again, begun, "a lost reply can be asked for again");
    const inbox = open();
    const busy = await settled(clock, inbox.handle({ key: "k" }, insert("b")));
    assert.equal(busy.outcome, "busy");
    await clock.advance(30_001);
    assert.equal((await settled(clock, inbox.handle({ key: "k" }, insert("b")))).outcome, "handled");
    const late = dead.commit({
      key: "k",
      token: 1,
      retentionMs: 1,
      run: (db) => insert("zombie")(db as DatabaseSync),
    });
    assert.deepEqual(await settled(clock, late), { outcome: "stale" });
    assert.deepEqual(effects(), ["b"], "two copies never both commit");
    await Promise.all([inbox.close(), dead.close()]);
  });

  test("copies that arrive at once from several handles take effect once [B5]", async () => {
    const { clock, open, effects } = bed();
    const inboxes = Array.from({ length: 8 }, open);
    const outcomes = await settled(
      clock,
      Promise.all(inboxes.map((inbox, n) => inbox.handle({ key: "k" }, insert(String(n))))),
    );
    assert.equal(outcomes.filter(({ outcome }) => outcome === "handled").length, 1);
    assert.equal(effects().length, 1);
    await Promise.all(inboxes.map((inbox) => inbox.close()));
  });

  test("a done key is remembered for the retention, which must be longer than any replay", async () => {
    const { clock, open } = bed();
    const inbox = open();
    await settled(clock, inbox.handle({ key: "k" }, insert("a")));
    await clock.advance(44 * 86_400_000);
    assert.equal(await settled(clock, inbox.prune()), 0);
    assert.equal((await settled(clock, inbox.handle({ key: "k" }, insert("b")))).outcome, "duplicate");
    await clock.advance(2 * 86_400_000);
    assert.equal(await settled(clock, inbox.prune()), 1);
    await inbox.close();
    assert.throws(() => createInbox({ store: sqliteInbox("x"), retention: "1d", longestReplay: "2d" }), {
      code: "invalid-option",
      message: /expected retentionMs to be more than longestReplayMs \(172800000\), got 86400000/,
    });
  });

  test("nonsense is refused: keys, options, an asynchronous effect on SQLite", async () => {
    const { clock, open, effects } = bed();
    const inbox = open();
    await assert.rejects(inbox.handle({ key: "" }, insert("a")), { code: "invalid-name" });
    assert.throws(() => createInbox({ store: sqliteInbox("x"), lese: 1 } as never), {
      code: "invalid-option",
    });
    const async = inbox.handle({ key: "k" }, async (db: DatabaseSync) => insert("a")(db));
    await assert.rejects(settled(clock, async), { code: "transaction-unavailable" });
    assert.deepEqual(effects(), []);
    await inbox.close();
  });
});

describe("effectively-once on a store without transactions", () => {
  /** Memory with its transactions hidden: what a store such as Redis offers. */
  function withoutTransactions(): StoreFactory {
    const inner = memory();
    return {
      async open(context) {
        const store = await inner.open(context);
        const capabilities = { ...store.capabilities, transactions: false };
        return new Proxy(store, {
          get: (_, key) => {
            if (key === "capabilities") return capabilities;
            const value: unknown = Reflect.get(store, key, store);
            return typeof value === "function" ? value.bind(store) : value;
          },
        });
      },
    };
  }

  test("it is refused when the inbox forgets sooner than retries are over, and warned of when redrives are not", async () => {
    const store = withoutTransactions();
    const job = defineJob<null>({
      name: "effect",
      delivery: "effectively-once",
      retry: { attempts: 3, backoff: { type: "fixed", delay: "1h", max: "1h", jitter: 0 } },
      run: () => {},
    });
    const keptBriefly = defineJob<null>({
      name: "effect",
      delivery: "effectively-once",
      retention: { dead: "10d", lost: "10d" },
    });
    const start = async (retention: Duration, own: AnyDefinition = job): Promise<string[]> => {
      const warnings: string[] = [];
      const log = { ...silentLogger, warn: (_: object, text: string) => void warnings.push(text) };
      const path = join(newFolder(), "effects.db");
      await using inbox = createInbox({ store: sqliteInbox(path), retention, longestReplay: "1m" });
      await using app = createEscapement({ store, jobs: [own], inbox, log });
      await app.start();
      return warnings;
    };
    await assert.rejects(start("2h"), {
      code: "invalid-option",
      message: /retries of job "effect".*7200000/,
    });
    assert.match((await start("20d")).join(), /redriven after the inbox has forgotten/);
    assert.doesNotMatch((await start("45d")).join(), /redriven/);
    assert.doesNotMatch((await start("20d", keptBriefly)).join(), /redriven/);
  });

  test("it is refused without an SQL inbox, and with one a second dispatch has no second effect [B5]", async () => {
    const path = join(newFolder(), "effects.db");
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec("create table effects (key text, by text)");
    let runs = 0;
    const job = defineJob<null>({
      name: "effect",
      delivery: "effectively-once",
      retry: { backoff: { delay: 1 } },
      run: async ({ tx }) => {
        runs += 1;
        await tx(insert(`run ${runs}`));
        if (runs === 1) throw new Error("after the effect was committed");
        return "done";
      },
    });
    const store = withoutTransactions();
    await using refused = createEscapement({ store, jobs: [job], log: silentLogger });
    await assert.rejects(refused.start(), { code: "delivery-unsupported", message: /createInbox/ });
    await using inbox = createInbox({ store: sqliteInbox(path) });
    await using app = createEscapement({ store, jobs: [job], inbox, poll: 20, log: silentLogger });
    await app.start();
    const { id } = await app.enqueue(job, null);
    assert.equal(await app.result(id), "done");
    assert.equal(runs, 2);
    assert.deepEqual(
      database
        .prepare("select by from effects")
        .all()
        .map((row) => row["by"]),
      ["run 1"],
    );
  });

  test("a dispatch that died in its tx costs the next one no try: it waits until the key is free [B5]", async () => {
    const path = join(newFolder(), "effects.db");
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec("create table effects (key text, by text)");
    const job = defineJob<null>({
      name: "effect",
      delivery: "effectively-once",
      retry: { attempts: 1 },
      run: async ({ tx, job: { idempotencyKey } }) => {
        await dead.begin({ key: idempotencyKey, holder: "dead", leaseMs: 300, retentionMs });
        await tx(insert("next"));
      },
    });
    const dead = sqliteInbox(path);
    await dead.migrate();
    await using inbox = createInbox({ store: sqliteInbox(path) });
    const store = withoutTransactions();
    await using app = createEscapement({ store, jobs: [job], inbox, poll: 20, log: silentLogger });
    await app.start();
    const { id } = await app.enqueue(job, null);
    await app.result(id);
    assert.equal(database.prepare("select count(*) as n from effects").get()?.["n"], 1);
    await dead.close();
    database.close();
  });
});
