// Builds src/ for publishing: `npm run build`, or `node scripts/build.mjs <folder>` to build somewhere else.

import { cpSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { root, runTool } from "./tool.mjs";

const outDir = resolve(root, process.argv[2] ?? "dist");

rmSync(outDir, { recursive: true, force: true });
const { code, output } = await runTool("tsc", ["--project", "tsconfig.build.json", "--outDir", outDir]);
process.stdout.write(output);
process.exitCode = code;

// Whatever the compiler does not translate (SQL, Lua) is read at run time from beside the built module.
cpSync(join(root, "src"), outDir, {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith(".ts"),
});
