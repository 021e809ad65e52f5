import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { partsOf, sourceOf } from "../src/stores/redis/connection/scripts.ts";
import { luaFiles } from "../src/stores/redis/lua/files.ts";
import { provide } from "../testbed/software.ts";

const found = await provide([{ programs: ["luacheck"], packages: [["lua-check"]] }]);
if (typeof found === "string" && process.env["CI"] === "true") throw new Error(found);
const skip = typeof found === "string" && found;

/** What Redis gives a script beside Lua's own. */
const settings = `std = {
  globals = {},
  read_globals = { "redis", "cjson", "cmsgpack", "struct", "KEYS", "ARGV", "ipairs", "pairs", "next", "pcall", "error", "tonumber", "tostring", "type",
    "unpack", "select", "math", "string", "table" },
}
max_line_length = false
-- The parts of a script share one scope: what a function calls its own may be a name of another file.
ignore = { "4.." }
`;

/** One line of what luacheck says: file, line, code, text. */
interface Finding {
  readonly file: string;
  readonly line: number;
  readonly code: string;
  readonly text: string;
}

const verbs = Object.keys(luaFiles).filter((name) => !name.startsWith("shared/"));

/** Runs luacheck on every script as it is sent: only there does each name have its definition. */
function lint(): Map<string, Finding[]> {
  assert(typeof found === "object");
  const folder = mkdtempSync(join(tmpdir(), "escapement-lua-"));
  try {
    writeFileSync(join(folder, ".luacheckrc"), settings);
    for (const name of verbs) writeFileSync(join(folder, name), sourceOf(luaFiles[name] ?? ""));
    const args = [".", "--codes", "--formatter", "plain", "--no-color"];
    const { stdout } = spawnSync("luacheck", args, { cwd: folder, encoding: "utf8" });
    const findings = new Map<string, Finding[]>(verbs.map((name) => [name, []]));
    for (const row of stdout.trim().split("\n")) {
      const [, name, line, code, text] = /^(?:\.\/)?(\S+):(\d+):\d+: \(([WE]\d+)\) (.*)$/.exec(row) ?? [];
      if (name === undefined || code === undefined || text === undefined) {
        assert.equal(row, "", `luacheck says: ${row}`);
        continue;
      }
      findings.get(name)?.push({ ...placeOf(name, Number(line)), code, text });
    }
    return findings;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The file of which a line of a script came, and the line there. */
function placeOf(verb: string, line: number): { readonly file: string; readonly line: number } {
  let first = 1;
  for (const { name, text } of partsOf(luaFiles[verb] ?? "")) {
    const lines = text.split("\n").length;
    if (line < first + lines) return { file: name ?? verb, line: line - first + 1 };
    first += lines;
  }
  return { file: verb, line };
}

/** A shared file may have names for some of its scripts, or use those that only some of them have: what counts is found in all of them. */
function problems(findings: ReadonlyMap<string, readonly Finding[]>): string[] {
  const holders = new Map<string, number>();
  for (const verb of verbs)
    for (const { name } of partsOf(luaFiles[verb] ?? ""))
      holders.set(name ?? verb, (holders.get(name ?? verb) ?? 0) + 1);
  const counts = new Map<string, { readonly finding: Finding; count: number }>();
  for (const finding of [...findings.values()].flat()) {
    const key = JSON.stringify(finding);
    const known = counts.get(key) ?? { finding, count: 0 };
    known.count += 1;
    counts.set(key, known);
  }
  return [...counts.values()]
    .filter(({ finding: { file, code }, count }) => code.startsWith("E") || count === holders.get(file))
    .map(
      ({ finding: { file, line, code, text } }) => `src/stores/redis/lua/${file}:${line}: ${text} (${code})`,
    )
    .toSorted();
}

describe("the Lua of the Redis store", { skip }, () => {
  test("has no unknown and no unused names, and parses", () => {
    assert.deepEqual(problems(lint()), []);
  });
});
