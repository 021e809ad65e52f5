import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { describe, EscapementError } from "../errors.ts";

/** The input of a job: JSON as it stands, @file, or - for standard input. */
export async function readInput(given: string): Promise<unknown> {
  const [source, where] = await sourceOf(given);
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new EscapementError(
      "invalid-input",
      `expected ${where} to be JSON, got ${describe(source)} (${error instanceof Error ? error.message : error}); quote it for the shell, such as '{"to":"ada"}', or name a file with @`,
      { cause: error },
    );
  }
}

async function sourceOf(given: string): Promise<[source: string, where: string]> {
  if (given === "-") return [await text(process.stdin), "standard input"];
  if (!given.startsWith("@")) return [given, "--input"];
  const path = given.slice(1);
  try {
    return [readFileSync(path, "utf8"), path];
  } catch (error) {
    throw new EscapementError("invalid-input", `cannot read ${path}: ${String(error)}`, { cause: error });
  }
}
