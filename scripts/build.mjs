// Builds src/ for publishing: `npm run build`, or `node scripts/build.mjs <folder>` to build somewhere else.

import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleApi } from "./bundle-api.mjs";
import { licensesOf } from "./licenses.mjs";
import { root, runTool } from "./tool.mjs";

const outDir = resolve(root, process.argv[2] ?? "dist");

rmSync(outDir, { recursive: true, force: true });
const { code, output } = await runTool("tsc", ["--project", "tsconfig.build.json", "--outDir", outDir]);
process.stdout.write(output);
process.exitCode = code;

// What these modules read from files (SQL, Lua, the version) is written into them: a bundle has no files beside it.
for (const path of [
  "runtime/version.ts",
  "dashboard/page-files.ts",
  ...globSync("stores/*/{migrations,functions,lua}/files.ts", { cwd: join(root, "src") }),
]) {
  const values = await import(pathToFileURL(join(root, "src", path)).href);
  const lines = Object.entries(values).map(
    ([name, value]) => `export const ${name} = ${JSON.stringify(value, null, 2)};`,
  );
  const target = join(outDir, path.replace(/\.ts$/, ".js"));
  writeFileSync(target, `${lines.join("\n")}\n`);
  rmSync(`${target}.map`, { force: true });
}
rmSync(join(outDir, "stores/text-files.js"));
rmSync(join(outDir, "stores/text-files.js.map"));
rmSync(join(outDir, "stores/text-files.d.ts"));

await bundleApi(join(outDir, "api"));

// What the page is made of, by what its workspace installs, without the tool that bundles it.
const { devDependencies } = JSON.parse(readFileSync(join(root, "dashboard", "package.json"), "utf8"));
const { esbuild: _tool, ...inPage } = devDependencies;
writeFileSync(join(outDir, "dashboard", "THIRD-PARTY-LICENSES.txt"), licensesOf(Object.keys(inPage)));
