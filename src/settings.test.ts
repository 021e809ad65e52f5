import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { loadConfigFile, readConfigFile } from "./runtime/config-file.ts";
import { resolveSettings } from "./settings.ts";

describe("settings", () => {
  let folder = "";
  const file = () => readConfigFile(folder);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "escapement-settings-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("options win over the environment, the environment over the file, the file over the defaults [A9]", () => {
    const json = { lease: "20s", poll: "2s", batch: 7, attempts: 9 };
    writeFileSync(join(folder, "escapement.config.json"), JSON.stringify(json));
    const environment = { ESCAPEMENT_POLL: "3s", ESCAPEMENT_BATCH: "8" };
    const settings = resolveSettings({ batch: 9 }, environment, file);
    assert.equal(settings.leaseMs, 20_000, "from the file");
    assert.equal(settings.pollMs, 3_000, "from the environment");
    assert.equal(settings.batch, 9, "from the options");
    assert.equal(settings.attempts, 9, "from the file");
    assert.equal(settings.concurrency, 10, "the default");
  });

  test("a TypeScript file is read by its default export [A9]", () => {
    writeFileSync(
      join(folder, "escapement.config.ts"),
      "const lease: string = '45s'; export default { lease };",
    );
    assert.equal(resolveSettings({}, {}, file).leaseMs, 45_000);
  });

  test("every variable of the environment reaches its setting [A9]", () => {
    const settings = resolveSettings(
      {},
      {
        ESCAPEMENT_STORE: "memory:",
        ESCAPEMENT_NAMESPACE: "billing",
        ESCAPEMENT_LEASE: "60000",
        ESCAPEMENT_POLL: "250ms",
        ESCAPEMENT_BATCH: "5",
        ESCAPEMENT_CONCURRENCY: "6",
        ESCAPEMENT_ATTEMPTS: "7",
      },
      file,
    );
    const { store, namespace, leaseMs, pollMs, batch, concurrency, attempts } = settings;
    assert.deepEqual(
      { store, namespace, leaseMs, pollMs, batch, concurrency, attempts },
      {
        store: "memory:",
        namespace: "billing",
        leaseMs: 60_000,
        pollMs: 250,
        batch: 5,
        concurrency: 6,
        attempts: 7,
      },
    );
  });

  test("the defaults are those of the design", () => {
    const settings = resolveSettings({}, {}, file);
    assert.equal(settings.leaseMs, 30_000);
    assert.equal(settings.heartbeatMs, 10_000);
    assert.equal(settings.pollMs, 1_000);
    assert.equal(settings.batch, 100);
    assert.equal(settings.attempts, 5);
    assert.equal(settings.maxCrashes, 3);
    assert.equal(settings.retention.succeededMs, 7 * 86_400_000);
    assert.equal(settings.retention.deadMs, 30 * 86_400_000);
  });

  test("a file is not read where store and jobs are given: it may import whoever asks", () => {
    writeFileSync(join(folder, "escapement.config.ts"), "throw new Error('read');");
    assert.equal(resolveSettings({ store: "memory:", jobs: [] }, {}, file).leaseMs, 30_000);
    assert.throws(() => resolveSettings({ store: "memory:" }, {}, file), /cannot load .*: Error: read/);
  });

  test("a file that awaits something is loaded by whoever can wait, and refused with what to do by createEscapement", async () => {
    const path = join(folder, "escapement.config.mts");
    writeFileSync(path, "export default { lease: await Promise.resolve('45s') };");
    assert.throws(() => resolveSettings({}, {}, file), /top-level await.*createEscapement\(options\)/);
    const loaded = await loadConfigFile(path);
    assert.equal(resolveSettings({}, {}, () => loaded).leaseMs, 45_000);
  });

  test("a CommonJS file exports its options itself", async () => {
    writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }');
    const path = join(folder, "escapement.config.js");
    writeFileSync(path, "module.exports = { lease: '45s' };");
    assert.equal(resolveSettings({}, {}, file).leaseMs, 45_000);
    const loaded = await loadConfigFile(path);
    assert.equal(resolveSettings({}, {}, () => loaded).leaseMs, 45_000);
  });

  test("an ES module in a CommonJS package is refused with what to do", async () => {
    writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }');
    const path = join(folder, "escapement.config.ts");
    writeFileSync(path, "import 'node:fs'; export default {};");
    const advice = /says "type": "commonjs".*call it escapement\.config\.mts, or set "type": "module"/;
    assert.throws(() => resolveSettings({}, {}, file), advice);
    await assert.rejects(loadConfigFile(path), advice);
    await assert.rejects(loadConfigFile(join(folder, "missing.ts")), /no config file .*missing\.ts; check/);
  });

  test("what does not fit together is refused with both values, as they were given", () => {
    assert.throws(() => resolveSettings({ lease: "1s", heartbeat: "2s" }, {}, file), {
      code: "invalid-option",
      message: 'expected lease to be more than twice as long as heartbeat ("2s"), got "1s"',
    });
    assert.throws(() => resolveSettings({ poll: 0 }, {}, file), /expected poll to be at least 1 ms, got 0/);
    assert.throws(() => resolveSettings({ lease: 2 }, {}, file), /expected lease to be at least 3 ms, got 2/);
    assert.throws(() => resolveSettings({ lease: "2d" }, {}, file), {
      code: "invalid-option",
      message: 'expected lease to be a duration of at most 1d, got "2d"',
    });
    assert.throws(() => resolveSettings({ lease: 15_000, heartbeat: 10_000 }, {}, file), {
      code: "invalid-option",
      message: "expected lease to be more than twice as long as heartbeat (10000), got 15000",
    });
  });

  test("nonsense is refused wherever it comes from", () => {
    const bad = { code: "invalid-option" };
    assert.throws(
      () => resolveSettings({ lese: "3s" } as object, {}, file),
      /unknown option "lese" of createEscapement/,
    );
    assert.throws(() => resolveSettings({}, { ESCAPEMENT_BATCH: "many" }, file), bad);
    assert.throws(() => resolveSettings({ concurrency: 0 }, {}, file), bad);
    assert.throws(() => resolveSettings({ store: "" }, {}, file), bad);
    writeFileSync(join(folder, "escapement.config.json"), "{ nope");
    assert.throws(() => resolveSettings({}, {}, file), bad);
    writeFileSync(join(folder, "escapement.config.json"), '{"lese": 1}');
    assert.throws(() => resolveSettings({}, {}, file), /unknown option "lese" of escapement.config.json/);
    writeFileSync(join(folder, "escapement.config.json"), '{"schedules": {}}');
    const where =
      /unknown option "schedules" of escapement.config.json; put schedules into escapement.schedules/;
    assert.throws(() => resolveSettings({}, {}, file), where);
  });
});
