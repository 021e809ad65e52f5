import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const lock = `${root}.install-lock`;
const longestInstallMs = 10 * 60_000;

/** Runs `npm ci` when `node_modules` is not what the lockfile says; silent when there is nothing to do. */
export async function ensureInstalled() {
  if (isInstalled()) return;
  await takeLock();
  try {
    if (isInstalled()) return;
    console.error("escapement: installing the development dependencies (npm ci) …");
    await npmCi();
  } finally {
    rmSync(lock, { force: true });
  }
}

/**
 * npm writes the list of what it installed as its last step, so comparing that list with the lockfile sees
 * a missing, an interrupted and an outdated install alike, whatever the files' times are.
 */
function isInstalled() {
  const wanted = readPackages(`${root}package-lock.json`);
  const installed = readPackages(`${root}node_modules/.package-lock.json`);
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (!path.startsWith("node_modules/")) return true;
    const found = installed[path];
    return found ? found.version === version && found.integrity === integrity : optional || devOptional;
  });
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch (error) {
    if (error.code === "ENOENT" || error instanceof SyntaxError) return {};
    throw error;
  }
}

async function npmCi() {
  const args = ["ci", "--include=dev", "--include=optional", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  const child =
    npm && node
      ? spawn(node, [npm, ...args], { cwd: root })
      : spawn("npm", args, { cwd: root, shell: process.platform === "win32" });
  const output = [];
  child.stdout.on("data", (chunk) => output.push(chunk));
  child.stderr.on("data", (chunk) => output.push(chunk));
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  if (code === 0) return;
  process.stderr.write(Buffer.concat(output));
  throw new Error(`npm ci failed (exit code ${code}); its output is above.`);
}

/** One installer at a time: the lock is a file with the holder's process id, created by a write that must win. */
async function takeLock() {
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    removeDeadLock();
    await sleep(200);
  }
}

/**
 * A lock is removed by its holder, or by whoever finds the holder gone. The guard lets one process at a time look
 * and remove; two of them could otherwise both see the dead holder, and the second remove the first one's new lock.
 */
function removeDeadLock() {
  const guard = `${lock}-guard`;
  try {
    mkdirSync(guard);
  } catch (error) {
    if (ageMs(guard) < longestInstallMs) return;
    throw new Error(`an install was cut off; delete ${guard} and run the command again.`, { cause: error });
  }
  try {
    if (isDead(lock)) rmSync(lock, { force: true });
  } finally {
    rmdirSync(guard);
  }
}

/** Age counts too, because a process id may have been given to another process since. */
function isDead(path) {
  if (ageMs(path) > longestInstallMs) return true;
  try {
    const holder = Number(readFileSync(path, "utf8"));
    if (holder > 0) process.kill(holder, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

function ageMs(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats ? Date.now() - stats.mtimeMs : 0;
}
