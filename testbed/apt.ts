import { spawn } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";

const policy = "/usr/sbin/policy-rc.d";
const timeoutMs = 10 * 60_000;

/** Several servers may need packages, and only one list of them has to be fetched. */
let isUpdated = false;

/** Installs Debian or Ubuntu packages and starts none of their services; gives back why that was not possible. */
export async function install(packages: readonly string[]): Promise<string | undefined> {
  const what = `apt-get install ${packages.join(" ")}`;
  if (process.getuid?.() !== 0) return `${what} needs root`;
  if (!existsSync("/etc/debian_version")) return `${what} needs Debian or Ubuntu`;
  const args = [
    "install",
    "--yes",
    "--no-install-recommends",
    "--option",
    "DPkg::Lock::Timeout=300",
    ...packages,
  ];
  return withoutServices(async () => {
    const first = await aptGet(args);
    if (first === undefined || isUpdated) return first && `${what} failed: ${first}`;
    isUpdated = true;
    const second = (await aptGet(["update"])) ?? (await aptGet(args));
    return second && `${what} failed: ${second}`;
  });
}

/**
 * Packages start their service when they are installed, unless the machine's policy forbids it. A policy that is
 * there already is left as it is. Ours holds only while this process lives, in case it is killed halfway.
 */
async function withoutServices<T>(work: () => Promise<T>): Promise<T> {
  if (existsSync(policy)) return work();
  const ours = `#!/bin/sh\n# Written by Escapement's test bed, to be removed by it.\nkill -0 ${process.pid} 2>/dev/null && exit 101\nexit 0\n`;
  writeFileSync(policy, ours, { mode: 0o755 });
  try {
    return await work();
  } finally {
    rmSync(policy, { force: true });
  }
}

/** Never killed halfway: an interrupted dpkg leaves the machine in need of repair. */
function aptGet(args: readonly string[]): Promise<string | undefined> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const child = spawn("apt-get", args, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    detached: true,
  });
  let said = "";
  child.stdout.on("data", (chunk) => (said += chunk));
  child.stderr.on("data", (chunk) => (said += chunk));
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => {
      const errors = said.split("\n").filter((line) => line.startsWith("E: "));
      resolve(code === 0 ? undefined : errors.join(" ") || `exit code ${code}`);
    });
  });
}
