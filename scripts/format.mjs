// `npm run format`: formats everything, and fixes what the linter can fix.

import { runTool } from "./tool.mjs";

const runs = [
  { tool: "biome", args: ["check", "--write", "."] },
  { tool: "node", args: ["scripts/format-lua.mjs"] },
];

for (const { tool, args } of runs) {
  const { code, output } = await runTool(tool, args);
  if (output.trim() !== "") console.log(output.trim());
  if (code !== 0) process.exitCode = 1;
}
