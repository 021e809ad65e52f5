/**
 * What is not seen, or changes how its surroundings are read: control and format characters (among them those that turn the direction of
 * text), line and paragraph separators, halves of characters, invisible tags. Names, tags, errors and inputs come from anyone. The joiner
 * inside emoji is left alone.
 */
const unseen =
  /(?<!\p{Extended_Pictographic}|\ufe0f|\p{Emoji_Modifier})\u200d|[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|(?!\u200d)\p{Cf}/gu;

/** A mark for one such character: a control picture, or its code point. */
function markOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export interface Piece {
  readonly text: string;
  readonly isMark: boolean;
}

/** A string in pieces, of which some are marks in the place of what is not seen. Line breaks and tabs stay where lines are kept. */
export function piecesOf(value: string, keepsLines = false): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const { 0: found, index } of value.matchAll(unseen)) {
    if (keepsLines && (found === "\n" || found === "\t")) continue;
    if (index > from) pieces.push({ text: value.slice(from, index), isMark: false });
    pieces.push({ text: markOf(found), isMark: true });
    from = index + found.length;
  }
  if (from < value.length) pieces.push({ text: value.slice(from), isMark: false });
  return pieces;
}

/** The same as one string, for titles, labels and messages. */
export function visible(value: string, keepsLines = false): string {
  return piecesOf(value, keepsLines)
    .map(({ text }) => text)
    .join("");
}

/** The beginning of a string, at whole characters. */
export function cut(value: string, most: number): string {
  if (value.length <= most) return value;
  const end = (value.codePointAt(most - 2) ?? 0) > 0xffff ? most - 2 : most - 1;
  return `${value.slice(0, end)}…`;
}
