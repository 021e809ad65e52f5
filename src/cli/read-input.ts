import { createReadStream } from "node:fs";
import { describe, EscapementError } from "../errors.ts";
import { parseExact } from "../exact-json.ts";

/** The input of a job, with all digits of its numbers: verbatim JSON, @file, or - for standard input. */
export async function readInput(given: string): Promise<unknown> {
  const [source, where] = await sourceOf(given);
  try {
    return parseExact(source);
  } catch (error) {
    throw new EscapementError(
      "invalid-input",
      `expected ${where} to be JSON, got ${describe(source)} (${error instanceof Error ? error.message : error}); quote it for the shell, such as '{"to":"ada"}', or name a file with @`,
      { cause: error },
    );
  }
}

async function sourceOf(given: string): Promise<[source: string, where: string]> {
  if (given === "-") return [await readBounded(process.stdin, "standard input"), "standard input"];
  if (!given.startsWith("@")) return [given, "--input"];
  const path = given.slice(1);
  try {
    // As a stream, because it may be a pipe: `@<(jq …)`.
    return [await readBounded(createReadStream(path), path), path];
  } catch (error) {
    if (error instanceof EscapementError) throw error;
    throw new EscapementError("invalid-input", `cannot read ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** More than any store takes. A device would never end. */
const maxBytes = 64 * 1_048_576;

async function readBounded(stream: AsyncIterable<unknown>, where: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const part = Buffer.from(chunk as Uint8Array);
    bytes += part.length;
    if (bytes > maxBytes)
      throw new EscapementError("invalid-input", `expected ${where} to have at most ${maxBytes} bytes`);
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString();
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "you have no right to",
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return ("code" in error && reasons[String(error.code)]) || error.message;
}
