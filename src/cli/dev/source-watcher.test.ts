import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SourceWatcher } from "./source-watcher.ts";

const never = new AbortController().signal;

test("sources that change are reported, in folders made later too; what programs write is not", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "escapement-watch-"));
  for (const folder of ["jobs", "node_modules/x", "dist", ".escapement"])
    mkdirSync(join(root, folder), { recursive: true });
  const watcher = new SourceWatcher(root);
  t.after(() => {
    watcher.close();
    rmSync(root, { recursive: true });
  });
  const write = (...files: string[]): void => {
    for (const file of files) writeFileSync(join(root, file), String(Math.random()));
  };
  const untilReported = async (...files: string[]): Promise<void> => {
    const seen = new Set<string>();
    while (!files.every((file) => seen.has(file)))
      for (const file of await watcher.next(never)) seen.add(file);
    assert.deepEqual([...seen].sort(), files);
  };
  write("app.db", "app.db-wal", "app.db-shm", "app.db-notices", "report.csv");
  write("node_modules/x/index.js", "dist/index.js", ".escapement/state.json");
  write("config.mts", "jobs/a.ts");
  await untilReported("config.mts", "jobs/a.ts");

  mkdirSync(join(root, "more/below"), { recursive: true });
  write("more/below/b.mjs");
  await untilReported("more/below/b.mjs");
  write("more/below/b.mjs");
  await untilReported("more/below/b.mjs");

  // As editors save: beside it, and over it.
  write("jobs/a.tmp");
  renameSync(join(root, "jobs/a.tmp"), join(root, "jobs/a.ts"));
  await untilReported("jobs/a.ts");

  rmSync(join(root, "jobs"), { recursive: true });
  await untilReported("jobs/a.ts");
  mkdirSync(join(root, "jobs"));
  write("jobs/a.ts");
  await untilReported("jobs/a.ts");
});

test("the wait ends with its signal, and what changed meanwhile is reported by the next", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "escapement-watch-"));
  const watcher = new SourceWatcher(root);
  t.after(() => {
    watcher.close();
    rmSync(root, { recursive: true });
  });
  const stopping = new AbortController();
  const stopped = watcher.next(stopping.signal);
  stopping.abort();
  assert.deepEqual(await stopped, []);
  assert.deepEqual(await watcher.next(stopping.signal), []);
  writeFileSync(join(root, "a.ts"), "");
  assert.deepEqual(await watcher.next(never), ["a.ts"]);
});
