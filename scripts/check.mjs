// Everything that can be said about the sources without running the product, in one command.

import { runTool } from "./tool.mjs";

const checks = [
  { what: "types", tool: "tsc", args: ["--project", "tsconfig.json"] },
  { what: "types of the dashboard", tool: "tsc", args: ["--project", "dashboard/tsconfig.json"] },
  { what: "lint and format", tool: "biome", args: ["check", "--error-on-warnings", "."] },
  { what: "format of Lua", tool: "node", args: ["scripts/format-lua.mjs", "--check"] },
  { what: "names in Lua", tool: "node", args: ["--test", "test/lua.test.ts"] },
  { what: "dead files, exports and dependencies", tool: "knip", args: [] },
  { what: "generated files", tool: "node", args: ["scripts/generate.mjs", "--check"] },
  { what: "import directions, sizes, names, links", tool: "node", args: ["--test", "test/tidy.test.ts"] },
];

const results = await Promise.all(
  checks.map(async ({ what, tool, args }) => ({ what, ...(await runTool(tool, args)) })),
);

for (const { what, code, output } of results) {
  console.log(`${code === 0 ? "ok  " : "FAIL"}  ${what}`);
  if (code !== 0) console.log(`\n${output.trim()}\n`);
}

const failed = results.filter(({ code }) => code !== 0);
if (failed.length > 0) {
  console.log(`${failed.length} of ${results.length} checks failed.`);
  process.exitCode = 1;
}
