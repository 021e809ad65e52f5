import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "node:test";
import type { EscapementOptions } from "../../src/settings.ts";
import type { StoreFactory } from "../../src/store.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { sqlite } from "../../src/stores/sqlite/index.ts";
import { createTestEscapement, type TestEscapement } from "../../src/testing/kit.ts";

/** A store to show a behaviour on, and how to start with a fresh one. */
export interface Bed {
  /** A started app on a store of its own, on a virtual clock; it is stopped and its data removed after the test. */
  app(options?: EscapementOptions): Promise<TestEscapement>;
  /** A fresh store, for tests that start several apps on it. */
  store(): StoreFactory;
}

const folders: string[] = [];
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const beds: Readonly<Record<string, () => StoreFactory>> = {
  memory: () => memory(),
  sqlite: () => sqlite(join(newFolder(), "jobs.db")),
};

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "escapement-"));
  folders.push(folder);
  return folder;
}

/** Shows the same behaviour on every store. */
export function onEveryStore(name: string, define: (bed: Bed) => void): void {
  for (const [store, create] of Object.entries(beds)) {
    describe(`${name} (${store})`, () => {
      define({
        store: create,
        app: (options) => createTestEscapement({ store: create(), ...options }),
      });
    });
  }
}
