import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../clock.ts";
import { silentLogger } from "../../log.ts";
import type { ClaimParams } from "../../store/claims.ts";
import type { Notice } from "../../store/notices.ts";
import type { Store } from "../../store/store.ts";
import { newJob, succeed } from "../../testing/conformance/scene.ts";
import { sqlite } from "./index.ts";

/** What another process does; this file is its program too. */
type Role = "drain" | "hold" | "migrate" | "enqueue";

const context = { namespace: "processes", clock: systemClock, log: silentLogger };
const deadlineMs = 30_000;
const leaseMs = 1_500;

const claimAs = (claimer: string, sequence: number, limit: number): ClaimParams => ({
  claimer,
  sequence,
  leaseMs,
  limit,
  queues: null,
  names: [{ name: "work", concurrency: null, rate: null }],
  alone: false,
});

const say = (line: unknown): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

const programs: Readonly<Record<Role, (store: Store) => Promise<void>>> = {
  /** Claims and finishes until nothing is left, saying each (id, token) before it finishes it. */
  async drain(store) {
    const claimer = `drainer ${process.pid}`;
    for (let sequence = 1, idle = 0; idle < 5; sequence += 1) {
      const { jobs } = await store.claim(claimAs(claimer, sequence, 20));
      idle = jobs.length === 0 ? idle + 1 : 0;
      for (const { id, token } of jobs) say({ id, token });
      const finishes = jobs.map(({ id, token }) => ({ id, token, outcome: succeed }));
      const results = await store.finish({ claimer, finishes });
      assert(results.every(({ outcome }) => outcome === "written"));
    }
  },
  /** Takes ten jobs and falls silent. */
  async hold(store) {
    const { jobs } = await store.claim(claimAs(`holder ${process.pid}`, 1, 10));
    say(jobs.map(({ id }) => id));
    await delay(deadlineMs);
  },
  migrate: (store) => store.migrate(),
  async enqueue(store) {
    await store.enqueue({ jobs: [newJob("from another process", { queue: "far" })] });
  },
};

const [, , role, path] = process.argv;
if (role !== undefined && path !== undefined && Object.hasOwn(programs, role)) {
  const store = await sqlite(path).open(context);
  await programs[role as Role](store);
  await store.close();
} else {
  describe("several processes on one SQLite file", tests);
}

function tests(): void {
  const folder = mkdtempSync(join(tmpdir(), "escapement-"));
  after(() => rmSync(folder, { recursive: true }));

  const open = async (file: string): Promise<Store> => {
    const store = await sqlite(file).open(context);
    await store.migrate();
    return store;
  };

  test("four processes drain 2,000 jobs, each job exactly once [K1]", { timeout: 60_000 }, async () => {
    const file = join(folder, "drain.db");
    const store = await open(file);
    await store.enqueue({ jobs: Array.from({ length: 2_000 }, (_, n) => newJob(`job ${n}`)) });
    const said = await Promise.all([1, 2, 3, 4].map(() => run("drain", file)));
    const ids = said.flat().map((line) => JSON.parse(line).id);
    assert.equal(ids.length, 2_000);
    assert.equal(new Set(ids).size, 2_000);
    assert.deepEqual(await store.count({ filter: {}, by: ["state"] }), [
      { state: "succeeded", count: 2_000 },
    ]);
    await store.close();
  });

  test("what a killed process held is dispatched again after its lease, not before [A3]", async () => {
    const file = join(folder, "hold.db");
    const store = await open(file);
    await store.enqueue({ jobs: Array.from({ length: 10 }, (_, n) => newJob(`job ${n}`)) });
    const holder = start("hold", file);
    const [line] = await once(createInterface(holder.stdout), "line");
    await kill(holder);
    assert.equal(JSON.parse(line).length, 10);
    assert.deepEqual((await store.claim(claimAs("heir", 1, 10))).jobs, []);
    assert.deepEqual((await store.reap({ limit: 10 })).reaped, []);
    const reaped = await until(async () => {
      const answer = await store.reap({ limit: 100 });
      return answer.reaped.length === 0 ? null : answer.reaped;
    });
    assert.equal(reaped.length, 10);
    const { jobs } = await store.claim(claimAs("heir", 2, 10));
    assert.deepEqual(
      jobs.map(({ token, attempt, crashes }) => ({ token, attempt, crashes })),
      Array.from({ length: 10 }, () => ({ token: 2, attempt: 2, crashes: 1 })),
    );
    await store.close();
  });

  test("a process killed in the middle of its work loses no job and corrupts nothing [A3]", async () => {
    const file = join(folder, "kill.db");
    const store = await open(file);
    await store.enqueue({ jobs: Array.from({ length: 500 }, (_, n) => newJob(`job ${n}`)) });
    const victim = start("drain", file);
    await once(createInterface(victim.stdout), "line");
    await kill(victim);
    await until(async () => {
      await store.reap({ limit: 100 });
      const [active] = await store.count({ filter: { states: ["active"] }, by: [] });
      return active?.count === 0 ? true : null;
    });
    await run("drain", file);
    assert.deepEqual(await store.count({ filter: {}, by: ["state"] }), [{ state: "succeeded", count: 500 }]);
    await store.close();
    const database = new DatabaseSync(file);
    assert.deepEqual({ ...database.prepare("pragma integrity_check").get() }, { integrity_check: "ok" });
    database.close();
  });

  test("processes that migrate a new file at once make one schema", async () => {
    const file = join(folder, "new", "folder", "migrate.db");
    await Promise.all([1, 2, 3, 4].map(() => run("migrate", file)));
    const database = new DatabaseSync(file);
    const versions = database
      .prepare("select version, count(*) as times from escapement_migrations group by version")
      .all();
    assert(versions.length > 0 && versions.every(({ times }) => times === 1));
    database.close();
  });

  test("an enqueue in another process wakes this one", async () => {
    const file = join(folder, "wake.db");
    const store = await open(file);
    const heard: Notice[] = [];
    await store.subscribe((notice) => heard.push(notice));
    await run("enqueue", file);
    const isWakeUp = (notice: Notice): boolean =>
      notice.kind === "jobs" && (notice.queues?.includes("far") ?? true);
    await until(async () => (heard.some(isWakeUp) ? true : null));
    await store.close();
  });

  test("the file of notices may be removed at any time", async () => {
    const file = join(folder, "removed.db");
    const [store, other] = [await open(file), await open(file)];
    const heard: Notice[] = [];
    await store.subscribe((notice) => heard.push(notice));
    rmSync(`${file}-notices`);
    let sent = 0;
    await until(async () => {
      await other.enqueue({ jobs: [newJob(`job ${sent}`, { queue: "late" })] });
      sent += 1;
      return heard.some((notice) => notice.kind === "jobs" && notice.queues?.includes("late")) ? true : null;
    });
    await store.close();
    await other.close();
  });
}

function start(
  role: Role,
  file: string,
): ChildProcess & { readonly stdout: NonNullable<ChildProcess["stdout"]> } {
  const child = spawn(process.execPath, [import.meta.filename, role, file], {
    stdio: ["ignore", "pipe", "inherit"],
    // The test runner of the child must not think that it is one.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  return Object.assign(child, { stdout: child.stdout });
}

/** Runs another process to its end and returns the lines that it said. */
async function run(role: Role, file: string): Promise<string[]> {
  const child = start(role, file);
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  const [code] = await once(child, "close");
  assert.equal(code, 0, `the process that should ${role} ended with ${code}`);
  return lines;
}

async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

/** Asks until there is an answer; the deadline is far beyond what any machine needs. */
async function until<T>(ask: () => Promise<T | null>): Promise<T> {
  const since = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    assert(performance.now() - since < deadlineMs, "waited too long");
    await delay(10);
  }
}
