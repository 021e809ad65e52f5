import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, test } from "node:test";
import { inspect } from "node:util";
import { readEntries } from "../../src/app/schedule-file.ts";
import { systemClock } from "../../src/clock.ts";
import { EscapementError } from "../../src/errors.ts";
import { createEscapement, defineJob } from "../../src/index.ts";
import { silentLogger } from "../../src/log.ts";
import { readConfigFile } from "../../src/runtime/config-file.ts";
import { resolveSettings } from "../../src/settings.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { newJob } from "../../src/testing/conformance/scene.ts";
import { seedsToRun } from "../../src/testing/random/compare.ts";
import { escapement } from "../command.ts";
import { scratchFolder } from "../scratch.ts";

/** None of these may take long, and no machine is that slow. */
const boundedMs = 60_000;
const folder = scratchFolder("fuzz");
let files = 0;
const newPath = (name: string): string => {
  files += 1;
  const own = join(folder, String(files));
  mkdirSync(own);
  return join(own, name);
};

/** A generator with a seed (mulberry32), so that a failure can be repeated. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Damages a file somewhere: bytes changed, a piece cut out, doubled or wiped, or the end gone. */
function damage(bytes: Buffer, seed: number): Buffer {
  const below = chance(seed);
  const copy = Buffer.from(bytes);
  const [from, length] = [below(copy.length), 1 + below(200)];
  const to = Math.min(copy.length, from + length);
  switch (below(5)) {
    case 0:
      for (let n = 0; n < 1 + length / 10; n += 1) copy[below(copy.length)] = below(256);
      return copy;
    case 1:
      return Buffer.concat([copy.subarray(0, from), copy.subarray(to)]);
    case 2:
      return Buffer.concat([copy.subarray(0, to), copy.subarray(from)]);
    case 3:
      return copy.fill(below(256), from, to);
    default:
      return copy.subarray(0, from);
  }
}

function assertClear(error: unknown, what: string): void {
  assert(error instanceof EscapementError, `${what} ended in ${inspect(error)}`);
}

async function readsOrRefuses(what: string, read: () => unknown): Promise<void> {
  try {
    await read();
  } catch (error) {
    assertClear(error, what);
  }
}

const yaml = `# what runs when
base: &base { misfire: once }
schedules:
  nightly: { job: report, cron: "0 3 * * *", timezone: Europe/Berlin, input: { a: [1, 2, "x"] }, tags: [t] }
  once:
    job: report
    at: 2026-11-15T03:00:00Z
    input: &in
      text: |
        several
        lines
  again: { job: report, every: 5m, input: *in }
`;

const laughs = `${["a0: &a0 [x,x,x,x,x,x,x,x,x,x]", ...Array.from({ length: 12 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(",")}]`)].join("\n")}
schedules: { s: { job: report, every: 5m, input: *a12 } }`;

const hostileSchedules: Readonly<Record<string, string>> = {
  "aliases of aliases": laughs,
  "ten thousand levels": `schedules: { s: { job: report, every: 5m, input: ${"[".repeat(10_000)}${"]".repeat(10_000)} } }`,
  "a cycle": "schedules: { s: { job: report, every: 5m, input: &a [*a] } }",
  "a prototype": "schedules: { s: { job: report, __proto__: { every: 5m } } }",
  "unknown keys": "schedules: { s: { job: report, every: 5m, evry: 6m } }",
  "a list": "schedules: []",
  "two documents": "schedules: {}\n---\nschedules: {}",
  "a key twice": "schedules: { s: { job: report, every: 5m }, s: { job: report, every: 6m } }",
  "five megabytes": `schedules: {}\n#${"x".repeat(5_000_000)}`,
  "null bytes": "\0".repeat(10_000),
};

describe("files of schedules", { timeout: 5 * boundedMs }, () => {
  const report = defineJob({ name: "report", run: () => undefined });

  /** Starts a node on this file, in the folder where it looks for it. */
  async function start(path: string): Promise<void> {
    const before = process.cwd();
    process.chdir(join(path, ".."));
    const app = createEscapement({ store: memory(), jobs: [report], log: silentLogger, migrate: true });
    try {
      await app.start({ roles: ["planner"] });
    } finally {
      process.chdir(before);
      await app.stop();
    }
  }

  for (const [what, content] of Object.entries(hostileSchedules)) {
    test(`${what}: one clear error`, async () => {
      const path = newPath("escapement.schedules.yaml");
      writeFileSync(path, content);
      await assert.rejects(start(path), (error) => {
        assertClear(error, what);
        return true;
      });
    });
  }

  test("a file that keeps the parser busy does not keep the process from its work", async () => {
    const path = newPath("escapement.schedules.yaml");
    writeFileSync(path, `schedules: ${"[".repeat(1_000_000)}`);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 10);
    await assert.rejects(readEntries(path), /took longer|cannot be read/);
    clearInterval(timer);
    assert(turns > 50, `the event loop turned only ${turns} times`);
  });

  test("a pipe, a folder: one clear error, and no waiting", async () => {
    const pipe = newPath("escapement.schedules.yaml");
    execFileSync("mkfifo", [pipe]);
    const inPlace = newPath("escapement.schedules.yaml");
    mkdirSync(inPlace);
    for (const path of [pipe, inPlace]) await assert.rejects(start(path), { name: "EscapementError" });
  });

  test("damaged anywhere, a file is read or refused", async () => {
    const path = newPath("escapement.schedules.yaml");
    for (const seed of seedsToRun(15)) {
      writeFileSync(path, damage(Buffer.from(yaml), seed));
      await readsOrRefuses(`seed ${seed}`, () => readEntries(path));
    }
  });
});

describe("config files", { timeout: boundedMs }, () => {
  const settingsIn = (path: string): unknown =>
    resolveSettings({}, {}, () => readConfigFile(join(path, "..")));

  test("a pipe, a folder, nonsense, a prototype, or one that is too large: one clear error", async () => {
    const made: ((path: string) => void)[] = [
      (path) => execFileSync("mkfifo", [path]),
      (path) => mkdirSync(path),
      (path) => writeFileSync(path, "[".repeat(1_000_000)),
      (path) => writeFileSync(path, "null"),
      (path) => writeFileSync(path, '{"__proto__": {"concurrency": 1}}'),
      (path) => writeFileSync(path, " ".repeat(5_000_000)),
    ];
    for (const [place, make] of made.entries()) {
      const path = newPath("escapement.config.json");
      make(path);
      assert.throws(() => settingsIn(path), { name: "EscapementError" }, `file ${place}`);
    }
    const pipe = newPath("escapement.config.ts");
    execFileSync("mkfifo", [pipe]);
    const { code, stderr } = await escapement(join(pipe, ".."), "status");
    assert.deepEqual([code, stderr.trimEnd().split("\n").length], [2, 1], stderr);
  });

  test("damaged anywhere, a file is read or refused", async () => {
    const path = newPath("escapement.config.json");
    const good = JSON.stringify({ store: "sqlite:app.db", namespace: "n", concurrency: 5, lease: "30s" });
    for (const seed of seedsToRun(400)) {
      writeFileSync(path, damage(Buffer.from(good), seed));
      await readsOrRefuses(`seed ${seed}`, () => settingsIn(path));
    }
  });
});

describe("SQLite files", { timeout: 4 * boundedMs }, () => {
  const sound = join(folder, "sound.db");

  /** A short life: whatever is wrong with the file must come out as one of our errors. */
  async function live(path: string): Promise<void> {
    const store = await sqlite(path).open({ namespace: "fuzz", clock: systemClock, log: silentLogger });
    try {
      await store.migrate();
      await store.enqueue({ jobs: [newJob(`new ${crypto.randomUUID()}`)] });
      await store.claim({
        claimer: "node",
        sequence: 1,
        leaseMs: 60_000,
        limit: 10,
        queues: null,
        names: [{ name: "work", concurrency: null, rate: null }],
        alone: false,
      });
      await store.list({ filter: {}, limit: 100, order: "oldest", cursor: null });
      await store.reap({ limit: 100 });
      await store.health();
    } finally {
      await store.close();
    }
  }

  before(async () => {
    const store = await sqlite(sound).open({ namespace: "fuzz", clock: systemClock, log: silentLogger });
    await store.migrate();
    await store.enqueue({ jobs: Array.from({ length: 50 }, (_, n) => newJob(`job ${n}`)) });
    await store.close();
  });

  const refused: Readonly<Record<string, { code: string; make(path: string): void }>> = {
    garbage: { code: "store-corrupt", make: (path) => writeFileSync(path, "no database ".repeat(1_000)) },
    "a cut file": {
      code: "store-corrupt",
      make(path) {
        copyFileSync(sound, path);
        truncateSync(path, 5_000);
      },
    },
    "a folder": { code: "store-unavailable", make: (path) => mkdirSync(path) },
    "a pipe": { code: "store-unavailable", make: (path) => void execFileSync("mkfifo", [path]) },
    "a table of another application under our name": {
      code: "store-corrupt",
      make(path) {
        using database = new DatabaseSync(path);
        database.exec("create table escapement_jobs (whatever text)");
      },
    },
    "a ledger without its tables": {
      code: "store-corrupt",
      make(path) {
        copyFileSync(sound, path);
        using database = new DatabaseSync(path);
        database.exec("drop table escapement_jobs");
      },
    },
  };

  for (const [what, { code, make }] of Object.entries(refused)) {
    test(`${what}: one clear error`, async () => {
      const path = newPath("app.db");
      make(path);
      await assert.rejects(live(path), (error) => {
        assertClear(error, what);
        assert(
          error instanceof EscapementError && error.code === code && error.message.includes(path),
          inspect(error),
        );
        return true;
      });
    });
  }

  test("another application's database is shared with it, and its tables stay", async () => {
    const path = newPath("app.db");
    using database = new DatabaseSync(path);
    database.exec("create table theirs (id integer); insert into theirs values (7)");
    await live(path);
    assert.equal(database.prepare("select id from theirs").get()?.["id"], 7);
  });

  test("damaged anywhere, a database works or is refused", async () => {
    const bytes = readFileSync(sound);
    for (const seed of seedsToRun(40)) {
      const path = newPath("app.db");
      writeFileSync(path, damage(bytes, seed));
      try {
        await live(path);
      } catch (error) {
        assertClear(error, `seed ${seed}`);
      }
      rmSync(path, { force: true });
    }
  });

  test("noise in the files beside a database does no harm to it", async () => {
    for (const seed of seedsToRun(15)) {
      const path = newPath("app.db");
      copyFileSync(sound, path);
      const noise = damage(Buffer.alloc(40_000, String(seed)), seed);
      for (const end of ["-wal", "-shm", "-notices"]) writeFileSync(`${path}${end}`, noise);
      await live(path);
    }
  });
});
