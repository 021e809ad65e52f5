import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { findNode } from "./find-node.mjs";
import { ensureInstalled } from "./install.mjs";
import { testArguments } from "./test-arguments.mjs";
import { withTestbed } from "./testbed.mjs";
import { root } from "./tool.mjs";

/**
 * Installs what the lockfile asks for, finds a Node that can run the sources, and runs it with `args`.
 * Ends this process with the exit code of that one.
 */
export async function launch(args) {
  try {
    await ensureInstalled();
    const node = findNode();
    const [first, ...rest] = args;
    if (first !== "--test") await run(node, args);
    else await withTestbed(node, (env) => run(node, ["--test", ...testArguments(rest)], env));
  } catch (error) {
    console.error(`escapement: ${error.message}`);
    process.exitCode = 1;
  }
}

/** What Node has compiled is kept: tests and proofs start hundreds of processes, and each would compile the sources anew. */
const compiled = join(root, "node_modules", ".cache", "compiled");

function run(node, args, env = {}) {
  const child = spawn(node, args, {
    stdio: "inherit",
    env: { NODE_COMPILE_CACHE: compiled, ...process.env, ...env },
  });
  passSignalsOn(child);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      process.exitCode = code ?? 128 + constants.signals[signal];
      resolve();
    });
  });
}

function passSignalsOn(child) {
  let passedOn = false;
  const passOn = (signal) => {
    passedOn = true;
    child.kill(signal);
  };

  // A terminal sends Ctrl-C to the whole foreground group, so the child has it already; sent once more, it would
  // read as an impatient second Ctrl-C. Without a terminal nobody but us passes it on.
  process.on("SIGINT", () => process.stdin.isTTY || passOn("SIGINT"));
  process.on("SIGTERM", passOn);
  process.on("SIGHUP", passOn);

  // npm passes a SIGTERM on to the shell between it and us, which dies of it and tells nobody.
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    if (!passedOn) passOn("SIGTERM");
  }, 250);
  watch.unref();
}
