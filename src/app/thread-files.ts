import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AnyDefinition } from "../definition.ts";
import { EscapementError } from "../errors.ts";

/** Refuses, before anything runs, a handler whose file is not there: otherwise its jobs would find out, one by one. */
export function checkThreadFiles(definitions: Iterable<AnyDefinition>): void {
  for (const { name, run } of definitions) {
    if (!(run instanceof URL) || run.protocol !== "file:") continue;
    const path = fileURLToPath(run);
    if (existsSync(path)) continue;
    throw new EscapementError(
      "invalid-option",
      `expected run of job ${JSON.stringify(name)} to be the URL of a file that exists, got ${path}; is it part of the build?`,
    );
  }
}
