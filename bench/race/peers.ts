import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = fileURLToPath(new URL("./peers/", import.meta.url));
const require = createRequire(`${folder}package.json`);

/** Installs the peers where that is not done yet; their install scripts do not run. */
export function installPeers(): void {
  if (Object.entries(wanted).every(([name, version]) => installedVersion(name) === version)) return;
  console.error("race: installing the peers (npm install in bench/race/peers) …");
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const [command = "npm", ...rest] = npm && node ? [node, npm, ...args] : ["npm", ...args];
  const { status, stderr, stdout } = spawnSync(command, rest, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm install failed in bench/race/peers:\n${stdout}${stderr}`);
}

/** Exact versions, so a figure says what it was measured against. */
const wanted: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(`${folder}package.json`, "utf8"),
).dependencies;

function installedVersion(name: string): string | null {
  try {
    return JSON.parse(readFileSync(`${folder}node_modules/${name}/package.json`, "utf8")).version;
  } catch {
    return null;
  }
}

/** A peer's module. The types are the caller's: what is installed here is not known when the rest is checked. */
export async function load<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(require.resolve(name)).href)) as T;
}

export function versionOf(name: string): string {
  return wanted[name] ?? "unknown";
}
