import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { cacheFolder } from "./cache.ts";
import { run } from "./command.ts";

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
const timeoutMs = 5 * 60_000;

/** Java libraries that make one program: paths in a Maven repository, and the SHA-256 of each file. */
export interface Jars {
  readonly name: string;
  readonly version: string;
  readonly files: Readonly<Record<string, string>>;
  /** Where the Docker image keeps the same ones. */
  readonly inImage: string;
}

/** Has Maven fetch what the cache lacks, checks every file, and gives back the classpath; or says why that was not possible. */
export async function fetchJars(jars: Jars, maven: string): Promise<{ readonly classpath: string } | string> {
  const folder = join(cacheFolder(), `${jars.name}-${jars.version}`);
  try {
    // The server runs as another user, who must be able to read it.
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    const missing = Object.entries(jars.files).filter(
      ([path, sha256]) => !isThere(fileIn(folder, path), sha256),
    );
    if (missing.length > 0) await fetchMissing(folder, missing, maven);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `the jars of ${jars.name} ${jars.version} cannot be had: ${reason}`;
  }
  const paths = Object.keys(jars.files).map((path) => fileIn(folder, path));
  return { classpath: paths.sort().join(":") };
}

/** In a folder of its own first: others may fetch, and use, the same at the same time. */
async function fetchMissing(
  folder: string,
  files: readonly (readonly [path: string, sha256: string])[],
  maven: string,
): Promise<void> {
  const part = mkdtempSync(join(folder, ".part-"));
  try {
    const project = join(part, "pom.xml");
    writeFileSync(project, projectOf(files.map(([path]) => path)));
    const args = [
      "--quiet",
      "--batch-mode",
      "--file",
      project,
      copyDependencies,
      `-DoutputDirectory=${part}`,
    ];
    await run({ file: maven, args, env: {}, account: undefined, container: undefined }, timeoutMs);
    for (const [path, sha256] of files) {
      if (!isThere(fileIn(part, path), sha256)) throw new Error(`${basename(path)} is not what it should be`);
      renameSync(fileIn(part, path), fileIn(folder, path));
    }
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** A project that depends on exactly these: what they depend on in turn is listed, or not needed. */
function projectOf(paths: readonly string[]): string {
  const dependencies = paths.map((path) => {
    const [version, artifact, ...group] = path.split("/").slice(0, -1).reverse();
    return `<dependency>
      <groupId>${group.reverse().join(".")}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>`;
  });
  return `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>escapement</groupId><artifactId>testbed</artifactId><version>1</version>
  <dependencies>${dependencies.join("")}</dependencies>
</project>
`;
}

function fileIn(folder: string, path: string): string {
  return join(folder, basename(path));
}

function isThere(file: string, sha256: string): boolean {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex") === sha256;
  } catch {
    return false;
  }
}
