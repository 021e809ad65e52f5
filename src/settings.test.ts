import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { resolveSettings } from "./settings.ts";

describe("settings", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "escapement-settings-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("A9: options win over the environment, the environment over the file, the file over the defaults", () => {
    const json = { lease: "20s", poll: "2s", batch: 7, attempts: 9 };
    writeFileSync(join(folder, "escapement.config.json"), JSON.stringify(json));
    const environment = { ESCAPEMENT_POLL: "3s", ESCAPEMENT_BATCH: "8" };
    const settings = resolveSettings({ batch: 9 }, environment, folder);
    assert.equal(settings.leaseMs, 20_000, "from the file");
    assert.equal(settings.pollMs, 3_000, "from the environment");
    assert.equal(settings.batch, 9, "from the options");
    assert.equal(settings.attempts, 9, "from the file");
    assert.equal(settings.concurrency, 10, "the default");
  });

  test("A9: a TypeScript file is read by its default export", () => {
    writeFileSync(
      join(folder, "escapement.config.ts"),
      "const lease: string = '45s'; export default { lease };",
    );
    assert.equal(resolveSettings({}, {}, folder).leaseMs, 45_000);
  });

  test("A9: every variable of the environment reaches its setting", () => {
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
      folder,
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
    const settings = resolveSettings({}, {}, folder);
    assert.equal(settings.leaseMs, 30_000);
    assert.equal(settings.heartbeatMs, 10_000);
    assert.equal(settings.pollMs, 1_000);
    assert.equal(settings.batch, 100);
    assert.equal(settings.attempts, 5);
    assert.equal(settings.maxCrashes, 3);
    assert.equal(settings.retention.succeededMs, 7 * 86_400_000);
    assert.equal(settings.retention.deadMs, 30 * 86_400_000);
  });

  test("what does not fit together is refused with both values", () => {
    assert.throws(() => resolveSettings({ lease: 15_000, heartbeat: 10_000 }, {}, folder), {
      code: "invalid-option",
      message: "expected leaseMs to be more than twice heartbeatMs (10000), got 15000",
    });
  });

  test("nonsense is refused wherever it comes from", () => {
    const bad = { code: "invalid-option" };
    assert.throws(
      () => resolveSettings({ lese: "3s" } as object, {}, folder),
      /unknown option "lese" of createEscapement/,
    );
    assert.throws(() => resolveSettings({}, { ESCAPEMENT_BATCH: "many" }, folder), bad);
    assert.throws(() => resolveSettings({ concurrency: 0 }, {}, folder), bad);
    assert.throws(() => resolveSettings({ store: "" }, {}, folder), bad);
    writeFileSync(join(folder, "escapement.config.json"), "{ nope");
    assert.throws(() => resolveSettings({}, {}, folder), bad);
    writeFileSync(join(folder, "escapement.config.json"), '{"lese": 1}');
    assert.throws(() => resolveSettings({}, {}, folder), /unknown option "lese" of escapement.config.json/);
  });
});
