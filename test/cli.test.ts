import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { systemClock } from "../src/clock.ts";
import { createEscapement, defineJob } from "../src/index.ts";
import { silentLogger } from "../src/log.ts";
import { sqlite } from "../src/stores/sqlite/index.ts";
import { newFolder } from "./behaviour/stores.ts";
import { configure, escapement, main } from "./command.ts";

describe("the command line", () => {
  test("migrate --dry-run prints the SQL and changes nothing; migrate applies it; then there is nothing to do", async () => {
    const folder = newFolder();
    const store = ["--store", "sqlite:app.db"];
    const dry = await escapement(folder, "migrate", "--dry-run", ...store);
    assert.match(dry.stdout, /create table escapement_jobs/);
    assert.match((await escapement(folder, "migrate", ...store)).stdout, /applied 0001-/);
    assert.match((await escapement(folder, "migrate", "--dry-run", ...store)).stdout, /up to date/);
  });

  test("the printed SQL, run by hand, is what migrate would have done", async () => {
    const folder = newFolder();
    const { DatabaseSync } = await import("node:sqlite");
    const { stdout } = await escapement(folder, "migrate", "--dry-run", "--store", "sqlite:app.db");
    using database = new DatabaseSync(join(folder, "app.db"));
    database.exec(stdout);
    const app = createEscapement({
      store: `sqlite:${join(folder, "app.db")}`,
      migrate: false,
      log: silentLogger,
    });
    assert.equal((await app.enqueue(defineJob({ name: "job" }), 1)).outcome, "added");
    await app.stop();
  });

  test("status and doctor tell people and programs what is there", async () => {
    const folder = newFolder();
    const store = `sqlite:${join(folder, "app.db")}`;
    await using app = createEscapement({ store, log: silentLogger });
    await app.enqueue(defineJob({ name: "report" }), 1);
    await app.pauseQueue("slow");
    const status = await escapement(folder, "status", "--store", store);
    assert.match(status.stdout, /queue +job +due +later\ndefault +report +1 +0/);
    assert.match(status.stdout, /slow .* paused/);
    assert.match(status.stdout, /no nodes/);
    const json = JSON.parse((await escapement(folder, "status", "--store", store, "--json")).stdout);
    assert.deepEqual(json.counts, [{ queue: "default", name: "report", state: "waiting", count: 1 }]);
    const doctor = await escapement(folder, "doctor", "--store", store);
    assert.equal(doctor.code, 0);
    assert.match(doctor.stdout, /ok +SQLite 3\.\d+/);
    assert.match(doctor.stdout, /ok +durability: an acknowledged write survives/);
    assert.match(
      doctor.stdout,
      /WARN +1 waiting job of "report" in queue "default": no living node handles "report": no node is alive\n +→ start a node/,
    );
    assert.match(
      doctor.stdout,
      /WARN +queue "slow" is paused, and no job is in it\n +→ check its name \(queues with jobs: default\)/,
    );
  });

  test("doctor knows of relays: their canary, what brokers refuse, and that one is missing", async () => {
    const folder = newFolder();
    const store = `sqlite:${join(folder, "app.db")}`;
    const full = {
      kind: "refused",
      error: new Error("no room"),
      permanent: false,
      retryAfterMs: 60_000,
    } as const;
    const transport = {
      kind: "full",
      address: "",
      open: async () => ({
        publish: async (messages: readonly unknown[]) => messages.map(() => full),
        close: async () => {},
      }),
    };
    const pay = defineJob<null>({
      name: "pay",
      route: { transport, destination: "-", dispatchTimeoutMs: 1_000 },
    });
    const create = () => createEscapement({ store, jobs: [pay], relay: { canary: "1s" }, log: silentLogger });
    {
      await using relay = create();
      await relay.start({ roles: ["relay"] });
      await relay.enqueue(pay, null, { id: "p" });
      while ((await relay.get("p"))?.rollbacks !== 1) await new Promise((resolve) => setTimeout(resolve, 20));
      const { stdout } = await escapement(folder, "doctor", "--store", store);
      assert.doesNotMatch(stdout, /canary|no living/);
      assert.match(
        stdout,
        /WARN +"pay": 1 of the \d oldest .* the latest with Error: no room\n +→ escapement explain p --store /m,
      );
    }
    await using worker = create();
    await worker.start({ roles: ["worker"] });
    const { stdout } = await escapement(folder, "doctor", "--store", store);
    assert.match(
      stdout,
      /WARN +1 waiting job of "pay" in queue "default": no living relay publishes "pay".*\n +→ they have/,
    );
    assert.doesNotMatch(stdout, /canary/);
  });

  test("status measures by slots what a worker has under way, and nothing else", async () => {
    const folder = newFolder();
    const path = join(folder, "app.db");
    const store = await sqlite({ path }).open({
      namespace: "default",
      clock: systemClock,
      log: silentLogger,
    });
    await store.migrate();
    const node = { host: "h", pid: 1, version: "0", queues: null, names: [], concurrency: 10, ttlMs: 60_000 };
    await store.putNode({ ...node, id: "a-worker", roles: ["worker", "reaper"], active: 3 });
    await store.putNode({ ...node, id: "a-relay", roles: ["worker", "relay"], active: 64 });
    await store.putNode({ ...node, id: "a-planner", roles: ["planner"], active: 0 });
    await store.close();
    const { stdout } = await escapement(folder, "status", "--store", `sqlite:${path}`);
    assert.match(stdout, /a-worker +alive +worker\+reaper +3 of 10 slots +\ds ago/m);
    assert.match(stdout, /a-relay +alive +worker\+relay +64 in progress +\ds ago/m);
    assert.match(stdout, /a-planner +alive +planner +\ds ago/m);
  });

  test("only verify loads what breaks processes", async () => {
    const folder = newFolder();
    const watch = join(folder, "watch.mjs");
    writeFileSync(
      watch,
      `import { registerHooks } from "node:module";
       const load = (url, context, next) => (url.includes("/src/proof/") && console.error(url), next(url, context));
       registerHooks({ load });`,
    );
    const proofLoadedBy = async (...args: string[]): Promise<boolean> => {
      const child = spawn(process.execPath, ["--import", watch, main, ...args], { cwd: folder });
      return (await text(child.stderr)).includes("/src/proof/");
    };
    assert.equal(await proofLoadedBy("status", "--store", "sqlite:app.db"), false);
    assert.equal(await proofLoadedBy("verify", "--help"), false);
    assert.equal(await proofLoadedBy("verify", "--nodes", "0"), true, "it does not break any: it refuses");
  });

  test("tick runs what is due and ends; start stops gracefully on a signal [K12]", async () => {
    const folder = newFolder();
    const { stdout, code } = await escapement(folder, "tick", "--store", "sqlite:app.db");
    assert.deepEqual([code, stdout], [0, "0 succeeded, 0 failed, 0 reaped\n"]);
    configure(folder, `defineJob({ name: "job", run: () => {} })`);
    const child = execFile(process.execPath, [main, "start"], { cwd: folder });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.stdout?.on("data", (data) => {
      if (String(data).includes("is running")) child.kill("SIGTERM");
    });
    assert.equal(await ended, 0);
  });

  test("init writes a project once, and never over another [K12]", async () => {
    const folder = newFolder();
    const { stdout, code } = await escapement(folder, "init");
    assert.equal(code, 0);
    assert.match(stdout, /wrote escapement\.config\.mts/);
    assert.match(
      stdout,
      /next:\n {2}npm install escapement\n {2}npx escapement start\n/,
      "it is not installed there",
    );
    assert.ok(existsSync(join(folder, "jobs/hello.mts")));
    for (const [, file = ""] of stdout.matchAll(/^wrote (.+)$/gm))
      assert.doesNotMatch(readFileSync(join(folder, file), "utf8"), /await using/, "Node 22 cannot parse it");
    const before = readFileSync(join(folder, "escapement.config.mts"), "utf8");
    const again = await escapement(folder, "init");
    assert.equal(again.code, 2);
    assert.match(again.stderr, /already exist; nothing was written\. Remove them, or/);
    assert.equal(readFileSync(join(folder, "escapement.config.mts"), "utf8"), before);
    rmSync(join(folder, "enqueue.mts"));
    rmSync(join(folder, "jobs/hello.mts"));
    const third = await escapement(folder, "init");
    assert.match(third.stderr, /escapement\.config\.mts already exists; nothing was written\. Remove it, or/);
  });

  test("init where nothing can be written says so in one line, and leaves nothing behind", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "jobs"), "in the way");
    for (const target of [folder, join(folder, "jobs/below")]) {
      const { code, stderr } = await escapement(folder, "init", target);
      assert.equal(code, 2);
      assert.match(
        stderr,
        /^escapement: cannot write a project to .+: (EEXIST|ENOTDIR).*; nothing was written\. Name a folder .* \[invalid-option\]\n$/,
      );
    }
    assert.deepEqual(readdirSync(folder), ["jobs"]);
  });

  test("cron next and explain; days when the clocks change are marked [K12]", async () => {
    const folder = newFolder();
    const next = await escapement(
      folder,
      "cron",
      "next",
      "30 2 * * *",
      "--tz",
      "Europe/Berlin",
      "--count",
      "3",
      "--after",
      "2026-03-27T12:00:00Z",
    );
    assert.deepEqual(
      next.stdout
        .trimEnd()
        .split("\n")
        .map((line) => [/\S+Z/.exec(line)?.[0], line.includes("the clocks go forward by 60 minutes")]),
      [
        ["2026-03-28T01:30:00.000Z", false],
        ["2026-03-29T01:00:00.000Z", true],
        ["2026-03-30T00:30:00.000Z", false],
      ],
    );
    assert.equal(
      (await escapement(folder, "cron", "explain", "0 9 * * mon-fri")).stdout,
      "at 09:00, on Monday to Friday\n",
    );
    const empty = await escapement(folder, "cron", "explain", "0 2 30 2 *");
    assert.match(empty.stdout, /\nit never fires\n$/);
    const bad = await escapement(folder, "cron", "next", "0 25 * * *");
    assert.deepEqual([bad.code, /hour of "0 25 \* \* \*": expected 0 to 23/.test(bad.stderr)], [2, true]);
    assert.match((await escapement(folder, "cron", "next", "0 0 30 2 *")).stdout, /it never fires/);
    const never = await escapement(folder, "cron", "next", "0 0 * * *", "--after", "2027-02-31");
    assert.match(never.stderr, /'--after <time>' argument '2027-02-31' is invalid. expected a time such as/);
  });

  test("schedules can be looked at, paused, resumed, triggered; explain tells why something did not run [K12]", async () => {
    const folder = newFolder();
    const store = `sqlite:${join(folder, "app.db")}`;
    await using app = createEscapement({ store, log: silentLogger });
    const job = defineJob<number>({ name: "report" });
    await app.schedule("nightly", { cron: "0 3 * * *", timezone: "Europe/Berlin" }, job, 1);
    const run = (...args: string[]) => escapement(folder, ...args, "--store", store);
    assert.match((await run("schedules", "ls")).stdout, /nightly +report +at 03:00 \(Europe\/Berlin\)/);
    assert.equal((await run("schedules", "pause", "nightly")).code, 0);
    assert.match((await run("schedules", "ls")).stdout, /paused/);
    assert.equal((await run("schedules", "resume", "nightly")).code, 0);
    const triggered = JSON.parse((await run("schedules", "trigger", "nightly", "--json")).stdout);
    assert.match(
      (await run("explain", triggered.id)).stdout,
      /job .* \(report, at-least-once.*\n.*enqueued[\s\S]*now waiting/,
    );
    assert.match((await run("explain", "nightly@2026-01-01T02:00:00Z")).stdout, /was created later/);
    assert.match(
      (await run("explain", "nightly@2027-02-31T02:00:00Z")).stderr,
      /"2027-02-31T02:00:00Z" is not a time/,
    );
    assert.match(
      (await run("explain", "nightly@2026-01-01T02:30:00Z")).stdout,
      /does not fire at .* by its rules/,
    );
    assert.equal(
      (await run("schedules", "next", "nightly", "--count", "2")).stdout.trim().split("\n").length,
      2,
    );
    assert.match((await run("schedules", "show", "nightly")).stdout, /nothing in the last day/);
    const unknown = await run("schedules", "show", "nobody");
    assert.deepEqual([unknown.code, /there is no schedule "nobody"/.test(unknown.stderr)], [1, true]);
  });

  test("nonsense gets one clear line and a code of its own", async () => {
    const folder = newFolder();
    const unknown = await escapement(folder, "sttaus");
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /unknown command 'sttaus'/);
    const option = await escapement(folder, "status", "--stoer", "x");
    assert.deepEqual([option.code, /unknown option '--stoer'/.test(option.stderr)], [2, true]);
    const store = await escapement(folder, "status", "--store", "mongodb:x");
    assert.deepEqual([store.code, /\[invalid-option\]/.test(store.stderr)], [2, true]);
    assert.doesNotMatch(store.stderr, /\n +at /, "no stack trace for a mistake of the caller");
    assert.equal((await escapement(folder, "--help")).code, 0);
  });
});
