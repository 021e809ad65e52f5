import { EscapementError, recordError } from "../errors.ts";
import { readSmallFile } from "../runtime/small-file.ts";
import type { ApiToken } from "./options.ts";
import { roles } from "./roles.ts";

/**
 * Tokens from where a process list does not show them: the environment, or a file. A line each, or separated
 * by commas: `role:actor:token`, such as `read:grafana:6f1c…`. Empty lines and lines that start with # are passed over.
 */
export function parseTokens(text: string, where: string): ApiToken[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line, index) => {
      const [given = "", actor = "", token = "", ...more] = line.split(":");
      const role = roles.find((one) => one === given);
      if (role !== undefined && actor !== "" && token !== "" && more.length === 0)
        return { role, actor, token };
      // The line may be a token, so it is not repeated.
      throw new EscapementError(
        "invalid-option",
        `expected entry ${index + 1} of ${where} to be role:actor:token, where the role is ${roles.join(", ")}`,
      );
    });
}

export function readTokens(environment: NodeJS.ProcessEnv, file: string | null): ApiToken[] {
  const inline = environment["ESCAPEMENT_API_TOKENS"] ?? "";
  return [
    ...parseTokens(inline, "ESCAPEMENT_API_TOKENS"),
    ...(file === null ? [] : parseTokens(readTokenFile(file), file)),
  ];
}

function readTokenFile(file: string): string {
  try {
    return readSmallFile(file);
  } catch (error) {
    if (error instanceof EscapementError) throw error;
    throw new EscapementError("invalid-option", `cannot read ${file}: ${recordError(error).message}`);
  }
}
