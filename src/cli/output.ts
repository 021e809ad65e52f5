/** Prints a value for programs, or lines for people. */
export function print(json: boolean | undefined, value: unknown, lines: () => readonly string[]): void {
  console.log(json === true ? JSON.stringify(value, null, 2) : lines().join("\n"));
}

/** Rows under headings, each column as wide as it must be; numbers stand at the right. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string[] {
  const all = [headings, ...rows].map((row) => row.map(String));
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
