import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";

/** Where all jars come from. The checksums beside their names are what is trusted, not this address. */
const repository = "https://repo.maven.apache.org/maven2";
const atOnce = 4;
const tries = 3;
const timeoutMs = 2 * 60_000;

/** Java libraries that make one program: paths in the repository, and the SHA-256 of each file. */
export interface Jars {
  readonly name: string;
  readonly version: string;
  readonly files: Readonly<Record<string, string>>;
  /** Where the Docker image keeps the same ones. */
  readonly inImage: string;
}

/** Downloads what the cache lacks, checks every file, and gives back the classpath; or says why that was not possible. */
export async function fetchJars(jars: Jars): Promise<{ readonly classpath: string } | string> {
  const folder = join(cacheFolder(), `${jars.name}-${jars.version}`);
  const paths: string[] = [];
  try {
    // The server runs as another user, who must be able to read it.
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    const files = Object.entries(jars.files);
    const fetchNext = async (): Promise<void> => {
      for (let next = files.pop(); next !== undefined; next = files.pop()) {
        paths.push(await fetchJar(folder, ...next));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, fetchNext));
  } catch (error) {
    const { message, cause } = error as Error;
    return `the jars of ${jars.name} ${jars.version} cannot be had: ${cause instanceof Error ? `${message}: ${cause.message}` : message}`;
  }
  return { classpath: paths.sort().join(":") };
}

async function fetchJar(folder: string, path: string, sha256: string): Promise<string> {
  const file = join(folder, basename(path));
  if (digestOf(readIfThere(file)) === sha256) return file;
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await fetch(`${repository}/${path}`, { signal: AbortSignal.timeout(timeoutMs) });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      const found = digestOf(bytes);
      if (found !== sha256) throw new Error(`${path}: expected the SHA-256 ${sha256}, got ${found}`);
      const part = `${file}.${process.pid}`;
      writeFileSync(part, bytes, { mode: 0o644 });
      renameSync(part, file);
      return file;
    } catch (error) {
      if (attempt === tries) throw error;
    }
  }
}

function cacheFolder(): string {
  if (process.getuid?.() === 0) return "/var/cache/escapement-testbed";
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "escapement-testbed");
}

function readIfThere(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}

function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
