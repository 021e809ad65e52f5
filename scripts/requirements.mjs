// Which tests stand for which requirement: the ids are the rows of docs/REQUIREMENTS.md, the tests carry them in
// their names. Fails when an id of a built part has no test, and when a test names an id that does not exist.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tool.mjs";

const page = readFileSync(join(root, "docs/REQUIREMENTS.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.slice(2, -2).split(" | "));

const built = new Set(rows.filter(([, , isBuilt]) => isBuilt === "yes").map(([part]) => part));
const parts = new Set(rows.filter(([, , isBuilt]) => /^(yes|no)$/.test(isBuilt)).map(([part]) => part));
const requirements = rows
  .filter(([id]) => /^[A-Z]\d+$/.test(id))
  .map(([id, what, home]) => ({ id, what, parts: home.split(", "), tests: [] }));
const byId = new Map(requirements.map((requirement) => [requirement.id, requirement]));

const problems = requirements.flatMap(({ id, parts: named }) =>
  named.filter((part) => !parts.has(part)).map((part) => `${id} names "${part}", which is not a part.`),
);

for (const path of globSync(["{src,test}/**/*.test.ts", "src/testing/{conformance,transports}/**/*.ts"], {
  cwd: root,
})) {
  for (const { ids, title } of testNames(readFileSync(join(root, path), "utf8"))) {
    for (const id of ids) {
      const requirement = byId.get(id);
      if (requirement) requirement.tests.push(`${title}  (${path})`);
      else problems.push(`${path} has a test for ${id}, which is not in docs/REQUIREMENTS.md: "${title}".`);
    }
  }
}

for (const { id, what, parts: named, tests } of requirements) {
  const isBuilt = named.some((part) => built.has(part));
  const state =
    tests.length > 0 ? `${tests.length} test${tests.length === 1 ? "" : "s"}` : isBuilt ? "NO TEST" : "open";
  console.log(`${id.padEnd(4)} ${state.padEnd(9)} ${named.join(", ").padEnd(26)} ${shorten(what)}`);
  for (const test of tests) console.log(`       - ${test}`);
  if (isBuilt && tests.length === 0) problems.push(`${id} (${named[0]}) has no test.`);
}

const count = (state) => requirements.filter(state).length;
const unbuilt = [...parts].filter((part) => !built.has(part));
console.log(
  `\n${requirements.length} requirements: ${count(({ tests }) => tests.length > 0)} tested, ` +
    `${count(({ tests, parts: named }) => tests.length === 0 && !named.some((part) => built.has(part)))} open` +
    `${unbuilt.length === 0 ? "" : ` (${unbuilt.join(", ")} not built yet)`}, ${problems.length} problems.`,
);
for (const problem of problems) console.log(`FAIL  ${problem}`);
if (problems.length > 0 || requirements.length === 0) process.exitCode = 1;

function shorten(text) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** Names in calls such as `test("… [K3]")` and in tables such as `{ name: "… [K1, K2]" }`; what is skipped is no test. */
function testNames(source) {
  const code = source.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
  const names = code.matchAll(
    /(?<!\.(?:skip|todo))(?:\(|\bname:)\s*(["'`])((?:(?!\1).)+) \[([A-Z]\d+(?:, [A-Z]\d+)*)\]\1(?!,\s*\{[^}]*\b(?:skip|todo): *["'`t])/g,
  );
  return [...names].map(([, , title, ids]) => ({ ids: ids.split(", "), title }));
}
