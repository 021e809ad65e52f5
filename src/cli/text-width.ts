/** Characters that take two columns of a terminal: of East Asia, and pictures. */
const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
/** Characters that take none: they sit on, or join, others. */
const narrow = /\p{Mn}|\p{Me}|[\u200b-\u200d]/u;

const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const ascii = /^[\x20-\x7e]*$/;

/** How many columns of a terminal a string takes. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments.segment(text)) width += widthOfSegment(segment);
  return width;
}

function widthOfSegment(segment: string): number {
  if (wide.test(segment)) return 2;
  return [...segment].every((character) => narrow.test(character)) ? 0 : 1;
}

/** A string cut to that many columns; what was cut off is marked. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let width = 0;
  let kept = "";
  for (const { segment } of segments.segment(text)) {
    width += widthOfSegment(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return columns <= 0 ? "" : `${kept}…`;
}

/** The end of a string that is too long. */
export function cutStart(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let width = 0;
  let kept = "";
  for (const { segment } of [...segments.segment(text)].toReversed()) {
    width += widthOfSegment(segment);
    if (width > columns - 1) break;
    kept = segment + kept;
  }
  return columns <= 0 ? "" : `…${kept}`;
}

export function pad(text: string, columns: number, side: "start" | "end"): string {
  const spaces = " ".repeat(Math.max(0, columns - widthOf(text)));
  return side === "start" ? spaces + text : text + spaces;
}
