import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const holder = fileURLToPath(new URL("../testbed/holder.ts", import.meta.url));

/**
 * Runs `work` with the environment that lets all of its processes share one set of servers. Only what a test asks for
 * is started, and it ends when this process does, in whatever way: its end closes the input of the holder.
 */
export async function withTestbed(node, work) {
  const child = spawn(node, [holder], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const ended = once(child, "exit");
  const path = await Promise.race([once(child.stdout, "data").then(String), ended.then(() => undefined)]);
  try {
    // Without a holder, tests that need servers say what is wrong, and all others run.
    await work(path === undefined ? {} : { ESCAPEMENT_TESTBED: path.trim() });
  } finally {
    child.stdin.end();
    await ended;
  }
}
