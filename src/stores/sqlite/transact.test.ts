import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { sqlite } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "escapement-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

/** A store whose file also holds a table of the user's. */
async function setUp(): Promise<{ file: string; store: Store; user: DatabaseSync }> {
  files += 1;
  const file = join(folder, `${files}.db`);
  const store = await sqlite(file).open({ namespace: "tx", clock: systemClock, log: silentLogger });
  await store.migrate();
  const user = new DatabaseSync(file, { readBigInts: true, returnArrays: true });
  user.exec("create table invoices (customer text)");
  return { file, store, user };
}

const unheld = {
  claimer: "node",
  encode: (value: unknown) => ({ kind: "succeed" as const, result: JSON.stringify(value ?? null) }),
};

/** Each of the ids is active and this claimer's. */
async function heldAll(store: Store, ids: readonly string[]) {
  await store.enqueue({ jobs: ids.map((id) => newJob(id, { delivery: "effectively-once" })) });
  const names = [{ name: "work", concurrency: null, rate: null }];
  const { jobs } = await store.claim({
    claimer: "node",
    sequence: 1,
    leaseMs: 60_000,
    limit: ids.length,
    queues: null,
    names,
    alone: false,
  });
  return jobs.map(({ id, token }) => ({ ...unheld, id, token }));
}

async function held(store: Store) {
  const [claim] = await heldAll(store, ["a"]);
  assert(claim !== undefined);
  return claim;
}

function invoice(database: unknown): string {
  assert(database instanceof DatabaseSync);
  database.prepare("insert into invoices values (?)").run("42");
  return "written";
}

const invoices = (user: DatabaseSync): number => user.prepare("select * from invoices").all().length;

test("the caller's rows and the job's completion commit together", async () => {
  const { store, user } = await setUp();
  const claim = await held(store);
  assert.deepEqual(await store.transact({ ...claim, run: invoice }), {
    outcome: "committed",
    value: "written",
  });
  assert.equal(invoices(user), 1);
  assert.equal((await store.get({ ids: ["a"] }))[0]?.state, "succeeded");
  await store.close();
});

test("a stale token rolls the caller's rows back", async () => {
  const { store, user } = await setUp();
  const claim = await held(store);
  assert.deepEqual(await store.transact({ ...claim, token: 7, run: invoice }), { outcome: "stale" });
  assert.equal(invoices(user), 0);
  await store.close();
});

test("a function that returns a promise is refused, and its writes are rolled back", async () => {
  const { store, user } = await setUp();
  const claim = await held(store);
  const run = async (database: unknown): Promise<string> => invoice(database);
  await assert.rejects(store.transact({ ...claim, run }), { code: "transaction-unavailable" });
  assert.equal(invoices(user), 0);
  assert.equal((await store.get({ ids: ["a"] }))[0]?.state, "active");
  await store.close();
});

test("a function that ends the transaction itself is told so, and the job stays active", async () => {
  const { store } = await setUp();
  const claim = await held(store);
  const run = (database: unknown): void => (database as DatabaseSync).exec("commit");
  await assert.rejects(store.transact({ ...claim, run }), { code: "transaction-used" });
  assert.equal((await store.get({ ids: ["a"] }))[0]?.state, "active");
  await store.close();
});

test("functions of one turn share a commit", async () => {
  const { store, user } = await setUp();
  const claims = await heldAll(store, ["a", "b", "c"]);
  const seen: [inside: number, outside: number][] = [];
  const run = (database: unknown): void => {
    invoice(database);
    seen.push([invoices(database as DatabaseSync), invoices(user)]);
  };
  await Promise.all(claims.map((claim) => store.transact({ ...claim, run })));
  assert.deepEqual(seen, [
    [1, 0],
    [2, 0],
    [3, 0],
  ]);
  assert.equal(invoices(user), 3);
  await store.close();
});

test("a function that throws costs the others of its commit nothing, and none is run again", async () => {
  const { store, user } = await setUp();
  const claims = await heldAll(store, ["a", "b", "c"]);
  let runs = 0;
  const results = await Promise.allSettled(
    claims.map((claim) =>
      store.transact({
        ...claim,
        run(database) {
          runs += 1;
          invoice(database);
          if (claim.id === "b") throw new RangeError("no");
        },
      }),
    ),
  );
  assert.deepEqual(
    results.map((result) => (result.status === "rejected" ? result.reason.name : result.value.outcome)),
    ["committed", "RangeError", "committed"],
  );
  assert.deepEqual([runs, invoices(user)], [3, 2]);
  const found = await store.get({ ids: ["a", "b", "c"] });
  assert.deepEqual(
    found.map((job) => job?.state),
    ["succeeded", "active", "succeeded"],
  );
  await store.close();
});

for (const how of ["commit", "rollback", "release escapement_call", "rollback; begin"]) {
  test(`a function that says ${how} to a shared transaction doubles and loses nothing of the others`, async () => {
    const { store, user } = await setUp();
    const ids = ["a", "b", "c"];
    const claims = await heldAll(store, ids);
    await Promise.allSettled(
      claims.map((claim) =>
        store.transact({
          ...claim,
          run(database) {
            if (claim.id === "b") return (database as DatabaseSync).exec(how);
            (database as DatabaseSync).prepare("insert into invoices values (?)").run(claim.id);
          },
        }),
      ),
    );
    const found = await store.get({ ids });
    const rows = user.prepare("select customer from invoices order by customer").all();
    assert.deepEqual(
      [
        found.filter((job) => job?.state === "succeeded" && job.id !== "b").map((job) => job?.id),
        rows.flat(),
      ],
      [
        ["a", "c"],
        ["a", "c"],
      ],
    );
    await store.close();
  });
}

test("who is tried again by itself waits for the lock like anybody else", async () => {
  const { store, user } = await setUp();
  const claims = await heldAll(store, ["a", "b", "c"]);
  let isFirst = true;
  const results = await Promise.allSettled(
    claims.map((claim) =>
      store.transact({
        ...claim,
        run(database) {
          if (claim.id !== "b") return invoice(database);
          (database as DatabaseSync).exec("rollback");
          // Another comes in between, and stays for a while.
          if (isFirst) user.exec("begin immediate");
          if (isFirst) setTimeout(() => user.exec("commit"), 100);
          isFirst = false;
          return "";
        },
      }),
    ),
  );
  assert.deepEqual(
    results.map((result) => (result.status === "rejected" ? result.reason.code : result.value.outcome)),
    ["committed", "transaction-used", "committed"],
  );
  assert.equal(invoices(user), 2);
  await store.close();
});

test("a function that leaves a statement open is told so, and not taken for somebody who holds the lock", async () => {
  const { store, user } = await setUp();
  const claim = await held(store);
  let runs = 0;
  let left: Iterator<unknown> | undefined;
  const run = (database: unknown): void => {
    runs += 1;
    left = (database as DatabaseSync).prepare("insert into invoices values (7) returning customer").iterate();
    left.next();
  };
  await assert.rejects(store.transact({ ...claim, run }), { code: "transaction-used", message: /iterate/ });
  assert.equal(runs, 1);
  left?.return?.();
  assert.equal((await store.transact({ ...claim, run: invoice })).outcome, "committed");
  assert.equal(invoices(user), 1);
  await store.close();
});

test("jobs enqueued with the caller's own transaction commit and roll back with it, and wake listeners", async () => {
  const { store, user } = await setUp();
  const { promise: woken, resolve } = Promise.withResolvers<Notice>();
  await store.subscribe(resolve);
  user.exec("begin immediate");
  assert.deepEqual(await store.enqueue({ jobs: [newJob("lost")], tx: user }), [
    { id: "lost", outcome: "added" },
  ]);
  user.exec("rollback");
  assert.deepEqual(await store.get({ ids: ["lost"] }), [null]);
  user.exec("begin");
  invoice(user);
  await store.enqueue({ jobs: [newJob("kept"), newJob("keyed", { concurrencyKey: "k" })], tx: user });
  assert.deepEqual(await store.get({ ids: ["kept"] }), [null]);
  user.exec("commit");
  const found = await store.get({ ids: ["kept", "keyed"] });
  assert.deepEqual(
    found.map((job) => job?.state),
    ["waiting", "waiting"],
  );
  assert.equal((await woken).kind, "jobs");
  await store.close();
});

test("a handle that is not in a transaction on the store's file is refused", async () => {
  const { store, user } = await setUp();
  const jobs = [newJob("a")];
  const elsewhere = new DatabaseSync(":memory:");
  elsewhere.exec("begin");
  const unavailable = { code: "transaction-unavailable" };
  await assert.rejects(store.enqueue({ jobs, tx: user }), { ...unavailable, message: /BEGIN/ });
  await assert.rejects(store.enqueue({ jobs, tx: elsewhere }), { ...unavailable, message: /in memory/ });
  await assert.rejects(store.enqueue({ jobs, tx: {} }), { ...unavailable, message: /DatabaseSync/ });
  user.close();
  await assert.rejects(store.enqueue({ jobs, tx: user }), { ...unavailable, message: /closed/ });
  await store.close();
});
