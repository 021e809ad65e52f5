import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { newFolder } from "./behaviour/stores.ts";
import { escapement } from "./command.ts";

const library = JSON.stringify(join(import.meta.dirname, "../src/index.ts"));

describe("the config file of the command line", () => {
  test("may await something before it exports, and may be named by --config", async () => {
    const folder = newFolder();
    mkdirSync(join(folder, "dist"));
    writeFileSync(
      join(folder, "dist/settings.mjs"),
      `const store = await Promise.resolve("sqlite:named.db"); export default { store, jobs: [] };`,
    );
    const { stderr } = await escapement(folder, "status", "--config", "dist/settings.mjs");
    assert.match(stderr, /no database at .*named\.db/);
    const missing = await escapement(folder, "status", "--config", "nowhere.ts");
    assert.deepEqual([missing.code, /no config file .*nowhere\.ts/.test(missing.stderr)], [2, true]);
  });

  test("exports options: of an app it says so", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "escapement.config.mts"),
      `import { createEscapement } from ${library};
       export default createEscapement({ store: "sqlite:app.db", jobs: [] });`,
    );
    const { code, stderr } = await escapement(folder, "status");
    assert.deepEqual([code, /to be options, got an app/.test(stderr)], [2, true], stderr);
  });

  test("exports options by default: one that does not is told so, however it is read", async () => {
    const folder = newFolder();
    const file = join(folder, "escapement.config.mts");
    writeFileSync(file, `export const options = { store: "sqlite:app.db", jobs: [] };`);
    writeFileSync(
      join(folder, "main.mts"),
      `import { createEscapement } from ${library}; createEscapement();`,
    );
    const { code, stderr } = await escapement(folder, "status");
    const says = /config\.mts has no default export; export the options by it: export default options/;
    assert.deepEqual([code, says.test(stderr)], [2, true], stderr);
    const main = promisify(execFile)(process.execPath, ["main.mts"], { cwd: folder });
    await assert.rejects(main, { stderr: says });
    writeFileSync(file, "");
    assert.match((await escapement(folder, "status")).stderr, /export default \{ store, jobs \}/);
  });

  test("may import a job whose module has an app of its own, with store and jobs given", async () => {
    const folder = newFolder();
    const store = "sqlite:app.db";
    writeFileSync(
      join(folder, "app.mts"),
      `import { createEscapement } from ${library};
       export const app = createEscapement({ store: ${JSON.stringify(store)}, jobs: [] });`,
    );
    writeFileSync(
      join(folder, "jobs.mts"),
      `import { defineJob } from ${library};
       import { app } from "./app.mts";
       export const child = defineJob({ name: "child", run: () => {} });
       export const parent = defineJob({ name: "parent", run: async () => { await app.enqueue(child, null); } });`,
    );
    writeFileSync(
      join(folder, "escapement.config.mts"),
      `import { child, parent } from "./jobs.mts";
       export default { store: ${JSON.stringify(store)}, jobs: [child, parent] };`,
    );
    writeFileSync(
      join(folder, "enqueue.mts"),
      `import { createEscapement } from ${library};
       import { parent } from "./jobs.mts";
       await using app = createEscapement();
       await app.enqueue(parent, null);`,
    );
    await promisify(execFile)(process.execPath, ["enqueue.mts"], { cwd: folder });
    const ticked = await escapement(folder, "tick", "--json");
    assert.equal(ticked.code, 0, ticked.stderr);
    assert.match(
      (await escapement(folder, "status", "--json")).stdout,
      /"name":"child"/,
      "the handler enqueued it",
    );
  });

  test("that imports a module which reads it again is refused with what to do", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "app.mts"),
      `import { createEscapement } from ${library}; export const app = createEscapement();`,
    );
    writeFileSync(join(folder, "escapement.config.mts"), `import "./app.mts"; export default { jobs: [] };`);
    const { code, stderr } = await escapement(folder, "status");
    assert.equal(code, 2);
    assert.match(stderr, /imports a module that calls createEscapement\(\) without store and jobs/);
  });
});
