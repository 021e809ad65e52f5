import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { threadOptions } from "./thread-options.ts";

test("a thread inherits the flags of its process, but not those for code on the command line", () => {
  assert.deepEqual(threadOptions(["--enable-source-maps", "--import", "tsx"]), {});
  assert.deepEqual(
    threadOptions(["--input-type=module", "--import", "tsx", "-e", "code", "--conditions=x"]),
    {
      execArgv: ["--import", "tsx", "--conditions=x"],
    },
  );
});

test("leases are renewed by a thread also in a process whose code is on the command line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "escapement-"));
  const index = new URL("../index.ts", import.meta.url).href;
  const thread = new URL("../../test/handlers/work.ts", import.meta.url).href;
  const script = `
    import { createEscapement, defineJob } from ${JSON.stringify(index)};
    const lines = [];
    const log = { debug() {}, info() {}, warn: (_, line) => lines.push(line), error: (_, line) => lines.push(line) };
    const job = defineJob({ name: "job", run: () => "done" });
    const apart = defineJob({ name: "apart", run: new URL(${JSON.stringify(thread)}) });
    const app = createEscapement({ store: "sqlite:jobs.db", jobs: [job, apart], log });
    await app.start();
    const inline = await app.enqueue(job, null);
    const threaded = await app.enqueue(apart, { how: "return" });
    const results = [await app.result(inline.id), (await app.result(threaded.id)).how];
    await app.stop();
    console.log(JSON.stringify({ results, lines }));
  `;
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: folder,
      timeout: 120_000,
    });
    assert.deepEqual(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""), {
      results: ["done", "return"],
      lines: [],
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
