import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createEscapement, defineJob } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type Arrived, type FragilePlace, transportConformance } from "../../src/testing/index.ts";
import { appendTo } from "./index.ts";

// #region suite
async function newPlace(): Promise<FragilePlace> {
  const folder = mkdtempSync(join(tmpdir(), "escapement-file-"));
  const away = `${folder}-away`;
  let files = 0;
  return {
    route: async () => appendTo(join(folder, `${++files}.jsonl`)),
    // A file that nobody has made is made.
    missing: () => null,
    tooLarge: JSON.stringify("x".repeat(2_000_000)),
    dedupes: false,
    arrived: async (path) => linesOf(path).map((line) => JSON.parse(line) as Arrived),
    way: null, // no network to harm
    stop: async () => renameSync(folder, away),
    start: async () => renameSync(away, folder),
    close: async () => rmSync(folder, { recursive: true }),
  };
}

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

transportConformance({ name: "a file", open: newPlace, openFragile: newPlace });
// #endregion suite

test("a job with that route is in the file when it has succeeded", async () => {
  const folder = mkdtempSync(join(tmpdir(), "escapement-file-"));
  const path = join(folder, "audit.jsonl");
  const audit = defineJob<{ user: string }>({ name: "audit", route: appendTo(path) });
  const app = createEscapement({ store: memory(), jobs: [audit] });
  await app.start();
  const receipt = await app.enqueue(audit, { user: "ada" });
  await app.result(receipt);
  await app.stop();
  const [arrived] = linesOf(path).map((line) => JSON.parse(line) as Arrived);
  assert.equal(arrived?.body, '{"user":"ada"}');
  assert.equal(arrived.headers["escapement-name"], "audit");
  rmSync(folder, { recursive: true });
});
