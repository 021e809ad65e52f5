import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const root = new URL("..", import.meta.url);

/** The Node that runs the sources: the one in `tools/node`, or else the machine's own if it is new enough. */
export function findNode() {
  const needed = readJson("package.json").engines.node;
  const found = [];
  for (const node of [toolNode(), process.execPath, process.env.npm_node_execpath]) {
    const version = node && versionOf(node);
    if (!version) continue;
    if (satisfies(version, needed)) return node;
    found.push(version);
  }
  throw new Error(
    `found Node ${[...new Set(found)].join(", ")}, but Node ${needed} is needed and tools/node has none ` +
      `for ${process.platform} ${process.arch}; install Node 24 and run the command again.`,
  );
}

/** npm has installed the one platform package that fits this machine, or none. */
function toolNode() {
  const require = createRequire(new URL("tools/node/package.json", root));
  for (const name of Object.keys(readJson("tools/node/package.json").optionalDependencies)) {
    try {
      const manifest = require.resolve(`${name}/package.json`);
      return join(dirname(manifest), require(manifest).bin.node);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

/** Asks the binary itself: one made for another C library is installed all the same, and does not run. */
function versionOf(node) {
  if (node === process.execPath) return process.version;
  const { status, stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

/** Ranges of package.json that are made of `>=`, `<` and `||`. */
function satisfies(version, range) {
  return range
    .split(" || ")
    .some((part) =>
      part.split(" ").every((one) => isAtLeast(version, one.replace(/^(>=|<)/, "")) === one.startsWith(">=")),
    );
}

function isAtLeast(version, needed) {
  const [major, minor] = version.replace("v", "").split(".").map(Number);
  const [neededMajor, neededMinor = 0] = needed.split(".").map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

function readJson(path) {
  return JSON.parse(readFileSync(new URL(path, root), "utf8"));
}
