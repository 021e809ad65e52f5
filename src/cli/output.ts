import { inspect } from "node:util";
import { printable, printableJson } from "../printable.ts";

/** Prints a value for programs, or lines for people; what stands in a line cannot leave it. */
export function print(json: boolean | undefined, value: unknown, lines: () => readonly string[]): void {
  console.log(json === true ? printableJson(value, undefined, 2) : lines().map(printable).join("\n"));
}

/** Prints an error for a person. Its own line breaks stay, indented, so that no line of it can pass for one of ours. */
export function printError(error: unknown, prefix = ""): void {
  const text = typeof error === "string" ? error : inspect(error);
  console.error(`${prefix}${text.split("\n").map(printable).join("\n  ")}`);
}

/** Rows under headings, each column as wide as it must be; numbers stand at the right. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string[] {
  const all = [headings, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const numeric = headings.map((_, column) => rows.every((row) => typeof row[column] === "number"));
  return all.map((row) =>
    row
      .map((cell, column) =>
        numeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}

/** An argument that can be pasted into a shell and stays one argument. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
