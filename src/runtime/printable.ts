/**
 * What can change more of a screen than its own place: control characters (C0, DEL, C1), line and paragraph separators,
 * marks that turn the direction of text, and invisible tags. Names, errors and log lines come from jobs, and jobs from anyone.
 */
const unprintable = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text as one line for a terminal or a log: whatever could move the cursor or forge a line is shown as an escape. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => short[character] ?? escapeOf(character));
}

/** JSON as it is, except that what JSON leaves raw inside strings is escaped too; it means the same. */
export function printableJson(
  value: unknown,
  replacer?: (key: string, value: unknown) => unknown,
  indent?: number,
): string {
  const json: string | undefined = JSON.stringify(value, replacer, indent);
  // The line breaks here are the indentation: inside strings they are escaped already.
  return (json ?? "null").replace(unprintable, (character) =>
    character === "\n" ? character : escapeOf(character),
  );
}

/** By UTF-16 units, since that is what JSON knows. */
function escapeOf(character: string): string {
  return [...character.split("")]
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
