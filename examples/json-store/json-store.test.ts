import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeConformance, VirtualClock } from "../../src/testing/index.ts";
import { jsonFile } from "./index.ts";

storeConformance({
  name: "a JSON file",
  only: "core",
  async open() {
    const folder = mkdtempSync(join(tmpdir(), "escapement-json-"));
    const clock = new VirtualClock();
    const store = jsonFile(folder);
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    return {
      open: (namespace = "conformance") => store.open({ namespace, clock, log }),
      advance: (ms) => clock.advance(ms),
      close: async () => rmSync(folder, { recursive: true }),
    };
  },
});
