import assert from "node:assert/strict";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../clock.ts";
import { EscapementError } from "../../errors.ts";
import { silentLogger } from "../../log.ts";
import type { Store } from "../../store/store.ts";
import { newJob } from "../../testing/conformance/scene.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { connectionOf } from "./connection/connection.ts";
import { Transactions } from "./connection/transactions.ts";
import { sqlite } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "escapement-"));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

async function open(file: string, clock = systemClock): Promise<Store> {
  const store = await sqlite(file).open({ namespace: "faults", clock, log: silentLogger });
  await store.migrate();
  return store;
}

/** The message must name the file, so that a person knows where to look. */
function refusal(code: string, file: string): (error: unknown) => boolean {
  return (error) => error instanceof EscapementError && error.code === code && error.message.includes(file);
}

function edit(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

const claim = (sequence: number) =>
  ({
    claimer: "node",
    sequence,
    leaseMs: 60_000,
    limit: 10,
    queues: null,
    names: [{ name: "work", concurrency: null, rate: null }],
    alone: false,
  }) as const;

test("an unknown option, a wrong durability or an empty path is refused with its name", () => {
  const invalid = { name: "EscapementError", code: "invalid-option" };
  const misspelt: object = { path: "a.db", durabilty: "full" };
  assert.throws(() => sqlite(misspelt as { path: string }), { ...invalid, message: /"durabilty"/ });
  assert.throws(() => sqlite({ path: "a.db", durability: "weak" as "full" }), {
    ...invalid,
    message: /durability/,
  });
  assert.throws(() => sqlite(""), { ...invalid, message: /path/ });
});

test("a missing folder is made", async () => {
  const file = join(folder, "deep", "er", "jobs.db");
  const store = await open(file);
  assert(existsSync(file));
  await store.close();
});

test("a folder that cannot be made is unavailable", async () => {
  const obstacle = newFile();
  writeFileSync(obstacle, "a file, not a folder");
  const file = join(obstacle, "jobs.db");
  await assert.rejects(open(file), refusal("store-unavailable", file));
});

test("a file that is no database is corrupt, and stays as it is", async () => {
  const file = newFile();
  writeFileSync(file, "this is not a database, but somebody's letter".repeat(100));
  await assert.rejects(open(file), refusal("store-corrupt", file));
});

test("a database with a damaged page is corrupt", async () => {
  const file = newFile();
  const store = await open(file);
  await store.close();
  const damage = Buffer.alloc(4_096 * 20, 0x5a);
  const database = new DatabaseSync(file);
  database.exec("pragma journal_mode = delete");
  database.close();
  const handle = openSync(file, "r+");
  writeSync(handle, damage, 0, damage.length, 4_096);
  closeSync(handle);
  await assert.rejects(
    open(file).then((opened) => opened.enqueue({ jobs: [newJob("a")] })),
    refusal("store-corrupt", file),
  );
});

/** Root may write everywhere, so the test gives up being root for as long as it lasts. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

for (const [what, fileMode] of [
  ["a file that may only be read", 0o444],
  ["a file whose folder may only be read", 0o666],
] as const) {
  test(`${what} is read-only`, async () => {
    const file = newFile();
    await (await open(file)).close();
    chmodSync(folder, 0o555);
    chmodSync(file, fileMode);
    try {
      await asNobody(() => assert.rejects(open(file), refusal("store-readonly", file)));
    } finally {
      chmodSync(folder, 0o755);
    }
  });
}

test("a full disk refuses the call whole, and the store goes on when there is room again", async () => {
  const file = newFile();
  const store = await open(file);
  await store.enqueue({ jobs: [newJob("holder")] });
  const limitPages = async (sql: string, sequence: number): Promise<void> => {
    const [job] = (await store.claim(claim(sequence))).jobs;
    assert(job !== undefined);
    const run = (database: unknown): void => (database as DatabaseSync).exec(sql);
    await store.transact({
      claimer: "node",
      id: job.id,
      token: job.token,
      run,
      encode: () => ({ kind: "succeed", result: null }),
    });
  };
  await store.enqueue({ jobs: [newJob("second")] });
  await limitPages("pragma max_page_count = 1", 1);
  const large = Array.from({ length: 500 }, (_, n) =>
    newJob(`large ${n}`, { input: JSON.stringify("x".repeat(2_000)) }),
  );
  await assert.rejects(store.enqueue({ jobs: large }), refusal("store-full", file));
  assert.deepEqual(await store.count({ filter: { states: ["waiting"] }, by: [] }), [{ count: 0 }]);
  await store.enqueue({ jobs: [newJob("third")] });
  await limitPages("pragma max_page_count = 1000000", 2);
  assert.equal((await store.enqueue({ jobs: large })).length, 500);
  await store.close();
});

test("of calls that share a commit, only those fail that are at fault", async () => {
  const store = await open(newFile());
  const broken = newJob("broken", { input: undefined as unknown as string });
  const results = await Promise.allSettled([
    store.enqueue({ jobs: [newJob("a")] }),
    store.enqueue({ jobs: [newJob("half"), broken] }),
    store.enqueue({ jobs: [newJob("b")] }),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  const found = await store.get({ ids: ["a", "half", "broken", "b"] });
  assert.deepEqual(
    found.map((job) => job?.id ?? null),
    ["a", null, null, "b"],
  );
  await store.close();
});

test("a newer schema is refused where it is breaking, and used where it is not", async () => {
  const file = newFile();
  await (await open(file)).close();
  edit(file, "insert into escapement_migrations values (9998, '9998-kind.sql', 0, 0)");
  await (await open(file)).close();
  edit(file, "insert into escapement_migrations values (9999, '9999-rude.sql', 1, 0)");
  await assert.rejects(open(file), refusal("store-newer", file));
});

test("a store without its schema says what to do", async () => {
  const file = newFile();
  const store = await sqlite(file).open({ namespace: "faults", clock: systemClock, log: silentLogger });
  await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), refusal("store-unmigrated", file));
  await store.close();
});

test("a store that is closed says so", async () => {
  const file = newFile();
  const store = await open(file);
  await store.close();
  await assert.rejects(store.enqueue({ jobs: [newJob("a")] }), refusal("stopped", file));
  await assert.rejects(store.get({ ids: ["a"] }), refusal("stopped", file));
});

test("waiting for the write lock does not hold the event loop, and ends when the lock is free", async () => {
  const file = newFile();
  const store = await open(file);
  const other = new DatabaseSync(file);
  other.exec("begin immediate");
  let turns = 0;
  const added = store.enqueue({ jobs: [newJob("a")] });
  while (turns < 20) {
    turns += 1;
    await delay(1);
  }
  other.exec("commit");
  assert.deepEqual(await added, [{ id: "a", outcome: "added" }]);
  other.close();
  await store.close();
});

test("a lock that is never released is busy in the end, and the store can be used after that", async () => {
  const file = newFile();
  await (await open(file)).close();
  const own = new DatabaseSync(file, { timeout: 1 });
  const other = new DatabaseSync(file);
  other.exec("begin immediate");
  const transactions = new Transactions({
    connection: connectionOf(own),
    clock: systemClock,
    path: file,
    publish: () => undefined,
    deadlineMs: 50,
  });
  await assert.rejects(
    transactions.write(() => 1),
    refusal("store-busy", file),
  );
  other.exec("rollback");
  assert.equal(await transactions.write(() => 2), 2);
  other.close();
  own.close();
});

test("a wall clock that is set forward or back expires no lease [A7]", async () => {
  const clock = new VirtualClock();
  const store = await open(newFile(), clock);
  await store.enqueue({ jobs: [newJob("a")] });
  await store.claim(claim(1));
  for (const jump of [30 * 24 * 3_600_000, -60 * 24 * 3_600_000]) {
    clock.jump(jump);
    assert.deepEqual((await store.reap({ limit: 10 })).reaped, []);
  }
  assert.deepEqual(
    (await store.claim(claim(1))).jobs.map(({ id }) => id),
    ["a"],
  );
  await clock.advance(60_000);
  assert.deepEqual(
    (await store.reap({ limit: 10 })).reaped.map(({ id }) => id),
    ["a"],
  );
  await store.close();
});

test("a lease from before a reboot has run out, whatever the new count says", async () => {
  const clock = new VirtualClock();
  const file = newFile();
  const before = await open(file, clock);
  await before.enqueue({ jobs: [newJob("a")] });
  await before.claim(claim(1));
  await before.acquirePartitions({ owner: "relay", leaseMs: 60_000, partitions: 1, want: 1 });
  await before.close();
  edit(file, "update escapement_boots set machine_id = 'the boot before'");
  const store = await open(file, clock);
  assert.deepEqual(
    (await store.reap({ limit: 10 })).reaped.map(({ id }) => id),
    ["a"],
  );
  const granted = await store.acquirePartitions({ owner: "heir", leaseMs: 60_000, partitions: 1, want: 1 });
  assert.deepEqual(
    granted.map(({ epoch }) => epoch),
    [2],
  );
  await store.close();
});
