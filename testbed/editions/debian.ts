import {
  chmodSync,
  closeSync,
  globSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cached } from "../cache.ts";
import { type Command, run } from "../command.ts";

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const timeoutMs = 5 * 60_000;

/**
 * Packages of any Debian suite with all that they depend on, down to the C library, unpacked into a folder of the cache:
 * nothing is installed, and the machine's own packages do not matter.
 *
 * @returns the folder that stands for `/`.
 */
export async function debianPackages(
  suite: string,
  packages: readonly string[],
  finish: (root: string) => void,
): Promise<string> {
  const folder = await cached(`debian-${suite}-${packages.join("+")}`, async (target, lastName) => {
    const apt = join(target, "apt");
    const command = configured(apt, suite, await archive());
    await run(command(["update"]), timeoutMs);
    await run(
      command(["install", "--yes", "--download-only", "--no-install-recommends", ...packages]),
      timeoutMs,
    );
    const root = join(target, "root");
    mkdirSync(root, { mode: 0o755 });
    for (const file of globSync(join(apt, "cache/archives/*.deb"))) {
      await run(plain("dpkg-deb", ["--extract", file, root]), timeoutMs);
    }
    rmSync(apt, { recursive: true });
    wrapPrograms(root, join(lastName, "root"));
    finish(root);
  });
  return join(folder, "root");
}

/** Where this machine gets Debian's own packages from: the other suites stand beside them. */
async function archive(): Promise<string> {
  const ask = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"];
  const [first] = (await run(plain("apt-get", ask))).split("\n").filter((line) => line !== "");
  if (first !== undefined) return first;
  throw new Error("apt-get knows no archive of Debian; run apt-get update, or use a machine with Debian");
}

/** apt-get with lists, archives and a status of its own: it sees an empty machine with this suite. */
function configured(folder: string, suite: string, mirror: string): (args: readonly string[]) => Command {
  for (const name of ["lists/partial", "cache/archives/partial"])
    mkdirSync(join(folder, name), { recursive: true });
  const config = join(folder, "apt.conf");
  // Its lock lies beside it: two test beds may fetch at once.
  writeFileSync(join(folder, "status"), "");
  writeFileSync(join(folder, "sources.list"), `deb [signed-by=${keyring}] ${mirror} ${suite} main\n`);
  writeFileSync(
    config,
    `Dir::Etc::sourcelist "${folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "${folder}/lists";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
// Its own user for downloads may not enter the folder.
APT::Sandbox::User "";
`,
  );
  return (args) => ({ ...plain("apt-get", ["-qq", ...args]), env: { APT_CONFIG: config } });
}

function plain(file: string, args: readonly string[]): Command {
  return { file, args, env: {}, account: undefined, container: undefined };
}

/**
 * Puts a script in the place of each program, which starts it with the C library that it was linked for. Programs keep their names and
 * their neighbours: redis-server is a link to redis-check-rdb, and goes by the name that it was called by.
 */
function wrapPrograms(root: string, lastRoot: string): void {
  const places = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
  const loader = globSync(`{${places.join(",")}}/ld-{linux*,2*}.so*`, { cwd: root })[0];
  if (loader === undefined) throw new Error(`expected ${root} to have a loader of programs, got none`);
  const libraries = places.map((place) => join(lastRoot, place)).join(":");
  const start = `exec '${join(lastRoot, loader)}' --library-path '${libraries}'`;
  for (const folder of ["usr/bin", "usr/sbin"]) {
    const programs = globSync("*", { cwd: join(root, folder) }).filter((name) =>
      isElf(join(root, folder, name)),
    );
    mkdirSync(join(root, folder, "wrapped"), { recursive: true });
    for (const name of programs) {
      const path = join(root, folder, name);
      renameSync(path, join(root, folder, "wrapped", name));
      writeFileSync(path, `#!/bin/sh\n${start} '${join(lastRoot, folder, "wrapped", name)}' "$@"\n`);
      chmodSync(path, 0o755);
    }
  }
}

function isElf(path: string): boolean {
  try {
    const file = openSync(path, "r");
    const start = Buffer.alloc(4);
    readSync(file, start);
    closeSync(file);
    return start.toString("latin1") === "\x7fELF";
  } catch {
    return false; // A link to something outside.
  }
}
