import { createHash } from "node:crypto";
import { readErrorHead } from "../errors.ts";
import type { JobSketch } from "../store/questions.ts";

/** What failures with the same cause have in common: the error without what changes from job to job. */
export interface Fingerprint {
  /** Short and stable, to be named in a command. */
  readonly id: string;
  /** For a person: `TimeoutError: no answer from <text> after <n> s`. */
  readonly shape: string;
}

const longestMessage = 300;
const idLength = 10;

/**
 * What changes from job to job, in the order in which it is replaced: an id may hold numbers, a string may hold an id. A quote counts only
 * where a word does not continue across it, so "can't" and "won't" are no string.
 */
const variable: readonly (readonly [RegExp, string])[] = [
  [/(?<![\p{L}\p{N}])(["'`]).*?\1(?![\p{L}\p{N}])/gu, "<text>"],
  [/“[^”]*”|‘[^’]*’|«[^»]*»/gu, "<text>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?/g, "<time>"],
  [/\b0x[0-9a-f]+\b/gi, "<id>"],
  // Long words of hexadecimal digits, or of letters and digits mixed, are ids.
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, "<id>"],
  [/\b(?=\w*\d)(?=\w*[a-z])\w{16,}\b/gi, "<id>"],
  [/\d+(?:[.,:]\d+)*/g, "<n>"],
  [/\s+/g, " "],
];

/** The same error message for everything that differs only in numbers, ids, times and quoted strings. */
export function shapeOf(name: string, message: string): string {
  const [line = ""] = message.trimStart().split("\n");
  const shape = variable.reduce(
    (text, [pattern, placeholder]) => text.replace(pattern, placeholder),
    line.slice(0, longestMessage),
  );
  return name === "" ? shape.trim() : `${name}: ${shape.trim()}`;
}

/** The fingerprint of a job's failure: by its error, or by its reason if it has none. */
export function fingerprintOf({ errorHead, reason }: Pick<JobSketch, "errorHead" | "reason">): Fingerprint {
  const error = readErrorHead(errorHead);
  const shape =
    error === null ? shapeOf("", reason ?? "no reason is known") : shapeOf(error.name, error.message);
  return { id: createHash("sha256").update(shape).digest("hex").slice(0, idLength), shape };
}
