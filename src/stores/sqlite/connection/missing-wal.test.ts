import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { systemClock } from "../../../clock.ts";
import { type Logger, silentLogger } from "../../../log.ts";
import type { Store } from "../../../store/store.ts";
import { sqlite } from "../index.ts";

const folder = mkdtempSync(join(tmpdir(), "escapement-"));
after(() => rmSync(folder, { recursive: true }));

const module = new URL("../index.ts", import.meta.url).href;
const scene = new URL("../../../testing/conformance/scene.ts", import.meta.url).href;

/** A process that enqueues a job and is killed. */
function crash(file: string): void {
  const code = `
    const { sqlite } = await import(${JSON.stringify(module)});
    const { newJob } = await import(${JSON.stringify(scene)});
    const { systemClock } = await import(${JSON.stringify(new URL("../../../clock.ts", import.meta.url).href)});
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const store = await sqlite(process.argv[1]).open({ namespace: "n", clock: systemClock, log });
    await store.migrate();
    await store.enqueue({ jobs: [newJob("a")] });
    process.kill(process.pid, "SIGKILL");`;
  assert.throws(
    () => execFileSync(process.execPath, ["--input-type=module", "-e", code, file], { stdio: "pipe" }),
    {
      signal: "SIGKILL",
    },
  );
  assert.ok(existsSync(`${file}-wal`) && existsSync(`${file}-shm`) && existsSync(`${file}-notices`));
}

async function open(file: string): Promise<{ store: Store; warnings: string[] } & AsyncDisposable> {
  const warnings: string[] = [];
  const log: Logger = { ...silentLogger, warn: (_, message) => void warnings.push(message) };
  const store = await sqlite(file).open({ namespace: "n", clock: systemClock, log });
  await store.migrate();
  return { store, warnings, [Symbol.asyncDispose]: () => store.close() };
}

describe("a SQLite database without its -wal", () => {
  const removals = {
    "its -wal was removed after a crash": ["-wal"],
    "its -wal and -shm were removed after a crash": ["-wal", "-shm"],
  };
  for (const [name, suffixes] of Object.entries(removals)) {
    test(`${name}: it says so in the log and in health`, async () => {
      const file = join(folder, `${suffixes.length}.db`);
      crash(file);
      for (const suffix of suffixes) rmSync(`${file}${suffix}`);
      await using opened = await open(file);
      assert.deepEqual(await opened.store.get({ ids: ["a"] }), [null], "what was in it is gone");
      assert.equal(opened.warnings.length, 1);
      assert.match(
        opened.warnings[0] ?? "",
        /-wal file seems to have been removed.*everything.*restore a backup/,
      );
      assert.deepEqual((await opened.store.health()).problems, opened.warnings);
    });
  }

  test("after a crash alone, a clean stop, or where it is new or removed as a whole, it says nothing", async () => {
    const file = join(folder, "whole.db");
    crash(file);
    for (let round = 0; round < 2; round += 1) {
      await using opened = await open(file);
      assert.equal((await opened.store.get({ ids: ["a"] }))[0]?.state, "waiting");
      await using second = await open(file);
      for (const { store, warnings } of [opened, second])
        assert.deepEqual([warnings, (await store.health()).problems], [[], []]);
    }
    rmSync(file);
    await using anew = await open(file);
    assert.deepEqual(anew.warnings, []);
  });
});
