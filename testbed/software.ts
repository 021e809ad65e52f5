import { accessSync, constants, globSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type Account, serverAccount } from "./account.ts";
import { install } from "./apt.ts";
import { type Command, run } from "./command.ts";
import { containerCommand, dockerProblem } from "./docker.ts";
import type { Edition } from "./editions/index.ts";
import { fetchJars, type Jars } from "./maven.ts";

/** Programs that belong together, and where they can be had. */
export interface Software {
  /** All must be there; the first tells the version by `--version`. */
  readonly programs: readonly [string, ...string[]];
  /** Folders beside PATH, as globs; the ones that sort last are the newest and win. */
  readonly folders?: readonly string[];
  /** Package lists to try with apt-get, the best first; none if no distribution has it. */
  readonly packages: readonly (readonly string[])[];
  /** The Docker image. */
  readonly image?: string;
  /** A version text that shows a program of the same name from somebody else. */
  readonly notThis?: RegExp;
  /** What a Java program is made of; then the version is theirs. */
  readonly jars?: Jars;
}

/** Software that was found, ready to run. */
export interface Toolbox {
  readonly software: Software;
  readonly source: "binary" | "apt" | "docker" | "edition";
  /** A folder, packages, an image or an edition: for people to read. */
  readonly from: string;
  readonly version: string;
  /** Of the software's jars; empty if it has none. */
  readonly classpath: string;
  /** What its programs must be told to use in the place of `/usr`. */
  readonly prefix?: string;
  command(program: string, args: readonly string[], options?: CommandOptions): Command;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The folder that the program reads and writes. */
  readonly folder?: string;
}

const moreFolders = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Finds one of the given alternatives: on the machine, else by apt-get, else by Docker; or says why there is none. */
export async function provide(alternatives: readonly Software[]): Promise<Toolbox | string> {
  const problems: string[] = [];
  for (const software of alternatives) {
    const found = await onMachine(software, "binary");
    if (typeof found === "object") return found;
    if (found !== undefined) problems.push(found);
  }
  if (problems.length === 0)
    problems.push(`${alternatives.map(({ programs }) => programs[0]).join(" or ")} is not on this machine`);
  for (const software of alternatives) {
    for (const packages of software.packages) {
      const problem = await install(packages);
      const found = problem === undefined ? await onMachine(software, "apt", packages.join(" ")) : undefined;
      if (typeof found === "object") return found;
      problems.push(
        problem ?? found ?? `apt-get install ${packages.join(" ")} did not bring ${software.programs[0]}`,
      );
    }
  }
  for (const software of alternatives) {
    if (software.image === undefined) continue;
    const found = await inDocker(software, software.image);
    if (typeof found !== "string") return found;
    problems.push(found);
  }
  return [...new Set(problems)].join("; ");
}

/** Fetches an edition, unless the cache has it; what it lacks, such as a client, is taken from the machine. Or says why there is none. */
export async function provideEdition(
  edition: Edition,
  alternatives: readonly Software[],
): Promise<Toolbox | string> {
  const software = alternatives.find(({ programs }) => programs[0] === edition.program);
  if (software === undefined) return `${edition.name} runs no ${alternatives[0]?.programs[0]}`;
  if (process.platform !== "linux" || process.arch !== "x64")
    return `${edition.name} is fetched for Linux on x64 only`;
  try {
    const { folders, prefix } = await edition.fetch();
    const found = await onMachine(software, "edition", edition.name, folders);
    if (typeof found !== "object")
      return found ?? `${edition.name} lacks one of ${software.programs.join(", ")}`;
    return prefix === undefined ? found : { ...found, prefix };
  } catch (error) {
    return `${edition.name} cannot be fetched: ${(error as Error).message}`;
  }
}

/** Undefined when the programs are not there; a text when they are, and something else is missing. */
async function onMachine(
  software: Software,
  source: Exclude<Toolbox["source"], "docker">,
  from?: string,
  first: readonly string[] = [],
): Promise<Toolbox | string | undefined> {
  const folders = software.folders ?? [];
  const paths = new Map(software.programs.map((program) => [program, find(program, folders, first)]));
  const [main] = software.programs;
  const mainPath = paths.get(main);
  if (mainPath === undefined || [...paths.values()].includes(undefined)) return undefined;
  const account = serverAccount();
  const command: Toolbox["command"] = (program, args, options = {}) => ({
    file: paths.get(program) ?? program,
    args,
    env: options.env ?? {},
    account,
    container: undefined,
  });
  const version = await versionOf(command(main, ["--version"]), software);
  if (version === undefined) return undefined;
  const { jars } = software;
  const found = jars && (await fetchJars(jars, paths.get("mvn") ?? "mvn"));
  if (typeof found === "string") return found;
  return {
    software,
    source,
    from: from ?? dirname(mainPath),
    version: jars?.version ?? version,
    classpath: found?.classpath ?? "",
    command,
  };
}

async function inDocker(software: Software, image: string): Promise<Toolbox | string> {
  const problem = await dockerProblem();
  if (problem !== undefined) return problem;
  const account: Account | undefined = serverAccount();
  const command: Toolbox["command"] = (program, args, options = {}) =>
    containerCommand({ image, program, args, account, env: options.env ?? {}, folder: options.folder });
  try {
    const version = await versionOf(command(software.programs[0], ["--version"]), software, 10 * 60_000);
    if (version !== undefined) {
      const { version: ofJars = version, inImage: classpath = "" } = software.jars ?? {};
      return { software, source: "docker", from: image, version: ofJars, classpath, command };
    }
    return `the Docker image ${image} has no ${software.programs[0]}`;
  } catch (error) {
    return `the Docker image ${image} does not run: ${(error as Error).message}`;
  }
}

async function versionOf(
  command: Command,
  software: Software,
  timeoutMs?: number,
): Promise<string | undefined> {
  // Some say first where they are, and the name of a folder may have a version in it.
  const text = (await run(command, timeoutMs)).replace(/^\/\S+/, "");
  return software.notThis?.test(text) ? undefined : /\d+\.\d+(\.\d+)?/.exec(text)?.[0];
}

function find(program: string, patterns: readonly string[], first: readonly string[]): string | undefined {
  const special = patterns
    .flatMap((pattern) => globSync(pattern))
    .sort(byNumber)
    .reverse();
  const folders = [...first, ...special, ...(process.env["PATH"] ?? "").split(delimiter), ...moreFolders];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
