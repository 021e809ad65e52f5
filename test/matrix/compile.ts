import { execFile } from "node:child_process";
import { cpSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const folder = ".escapement/compiled";
let compiling: Promise<void> | undefined;

/**
 * Compiles sources and tests as the package is compiled: an old Node takes types away, but does not know `using`, which the
 * compiler rewrites.
 */
export function compile(): Promise<void> {
  compiling ??= run();
  return compiling;
}

/** Where a test file is once it has been compiled. */
export function compiled(path: string): string {
  return join(folder, path.replace(/\.ts$/, ".js"));
}

async function run(): Promise<void> {
  rmSync(join(root, folder), { recursive: true, force: true });
  const options = ["--noEmit", "false", "--noCheck", "--rootDir", ".", "--outDir", folder];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [tsc, "--project", "tsconfig.json", ...options], { cwd: root });
  for (const path of ["package.json", ...globSync("src/**/*.{sql,lua}", { cwd: root })]) {
    cpSync(join(root, path), join(root, folder, path));
  }
}
