/** What a search looks for, in the forms in which a store may hold it; see {@link needlesOf}. */
export type Needles = readonly string[];

/**
 * The forms of a string to look for in JSON: as it is, which also finds a piece of JSON, and as it is escaped inside a JSON string. Both in lower
 * case, to be looked for in lower case.
 */
export function needlesOf(text: string): Needles {
  const asciiLower = lowerAscii(text);
  return [...new Set([asciiLower, lowerAscii(JSON.stringify(text).slice(1, -1))])];
}

/** Only ASCII: what every store can do. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

export function hasNeedle(text: string | null, needles: Needles): boolean {
  if (text === null) return false;
  const lower = lowerAscii(text);
  return needles.some((needle) => lower.includes(needle));
}
