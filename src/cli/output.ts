import { inspect, styleText } from "node:util";
import { printable, printableJson } from "../runtime/printable.ts";
import { cutStart, cutTo, pad, widthOf } from "./text-width.ts";

export type Style = Parameters<typeof styleText>[0];

/** A part of a line with a colour, where there are colours. */
export class Painted {
  readonly text: string;
  readonly style: Style;

  constructor(text: string, style: Style) {
    this.text = text;
    this.style = style;
  }
}

/** A line for a person; what is in a part cannot leave the line. */
export type Line = string | readonly (string | Painted)[];

/** Only on a terminal, and not where the person wants none (NO_COLOR). */
export function render(line: Line, stream: NodeJS.WriteStream = process.stdout): string {
  const parts = typeof line === "string" ? [line] : line;
  return parts
    .map((part) => {
      if (typeof part === "string" || part.text.trim() === "") return printable(plain(part));
      return styleText(part.style, printable(part.text), { stream, validateStream: true });
    })
    .join("")
    .trimEnd();
}

function plain(part: string | Painted): string {
  return typeof part === "string" ? part : part.text;
}

/** Prints a value for programs, or lines for people. */
export function print(json: boolean | undefined, value: unknown, lines: () => readonly Line[]): void {
  const text =
    json === true
      ? printableJson(value)
      : lines()
          .map((line) => render(line))
          .join("\n");
  process.stdout.write(`${text}\n`);
}

/** Prints a list: for programs a line of JSON each, none for an empty one; lines for people. */
export function printList(
  json: boolean | undefined,
  values: readonly unknown[],
  lines: () => readonly Line[],
): void {
  if (json !== true) return print(false, values, lines);
  for (const value of values) process.stdout.write(`${printableJson(value)}\n`);
}

/** Prints something that is not part of the output, for a person only. */
export function remark(json: boolean | undefined, line: Line): void {
  if (json !== true) process.stderr.write(`${render(line, process.stderr)}\n`);
}

/** Prints an error for a person. Its own line breaks stay, indented, so no line of it can pass for one of ours. */
export function printError(error: unknown, prefix = ""): void {
  const text = typeof error === "string" ? error : inspect(error);
  console.error(`${prefix}${text.split("\n").map(printable).join("\n  ")}`);
}

export type Cell = string | number | Painted;

/** How many columns the terminal has; none if the output is not a terminal. */
export function columnsOf(stream: NodeJS.WriteStream = process.stdout): number {
  return stream.isTTY ? Math.max(20, stream.columns) : Number.POSITIVE_INFINITY;
}

const gap = 2;
/** A column is not made narrower than this, nor than its heading. */
const leastWidth = 8;
/** Where nothing is cut, cells are padded up to this. */
const widestPadding = 60;

export interface TableOptions {
  /** Headings of columns that a person copies from: they are left out, but never cut unless one is wider than the terminal. */
  readonly whole?: readonly string[];
  /** Headings, the most important first: where not all columns fit, the others are left out. @default `whole`, then from left to right */
  readonly importance?: readonly string[];
  /** @default those of the terminal */
  readonly columns?: number;
}

/**
 * Rows under headings, each column as wide as it must be; numbers are right-aligned. Where the terminal is too narrow, the least important
 * columns are left out, then the widest give way, the last of them first.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { whole = [], importance = whole, columns = columnsOf() }: TableOptions = {},
): Line[] {
  const texts = rows.map((row) => headings.map((_, column) => printable(textOf(row[column] ?? ""))));
  const natural = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...texts.map((row) => widthOf(row[column] ?? ""))),
  );
  const numeric = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"),
  );
  const least = headings.map((heading, column) => {
    const width = natural[column] ?? 0;
    return whole.includes(heading) ? width : Math.min(width, Math.max(leastWidth, widthOf(heading)));
  });
  const shown = shownColumns(headings, least, importance, columns);
  // Where nothing has to fit, one long cell must not push every other row to the right.
  const isCut = Number.isFinite(columns);
  const widths = isCut
    ? narrowed(natural, least, shown, columns)
    : natural.map((width) => Math.min(width, widestPadding));
  const line = (cells: readonly string[], styleOf: (column: number) => Style | null): Line =>
    shown.flatMap((column, place) => {
      // Ids that were made at about the same time begin alike: their ends differ.
      const cut = whole.includes(headings[column] ?? "") && cells !== headings ? cutStart : cutTo;
      const cell = cells[column] ?? "";
      const text = pad(
        isCut ? cut(cell, widths[column] ?? 0) : cell,
        widths[column] ?? 0,
        numeric[column] ? "start" : "end",
      );
      const style = styleOf(column);
      const painted = style === null ? text : new Painted(text, style);
      return place === 0 ? [painted] : [" ".repeat(gap), painted];
    });
  return [
    line(headings, () => "dim"),
    ...rows.map((row, index) =>
      line(texts[index] ?? [], (column) => {
        const cell = row[column];
        return cell instanceof Painted ? cell.style : null;
      }),
    ),
  ];
}

/** The columns that fit beside more important ones, from left to right; the most important in any case. */
function shownColumns(
  headings: readonly string[],
  least: readonly number[],
  importance: readonly string[],
  columns: number,
): number[] {
  const rank = (column: number): number => {
    const place = importance.indexOf(headings[column] ?? "");
    return place === -1 ? importance.length : place;
  };
  const shown: number[] = [];
  let left = columns + gap;
  for (const column of headings.map((_, index) => index).toSorted((a, b) => rank(a) - rank(b))) {
    const needed = (least[column] ?? 0) + gap;
    if (shown.length > 0 && needed > left) continue;
    shown.push(column);
    left -= needed;
  }
  return shown.toSorted((a, b) => a - b);
}

function textOf(cell: Cell): string {
  return cell instanceof Painted ? cell.text : String(cell);
}

function narrowed(
  natural: readonly number[],
  least: readonly number[],
  shown: readonly number[],
  columns: number,
): number[] {
  const [only = 0, ...others] = shown;
  if (others.length === 0)
    return natural.map((width, column) => (column === only ? Math.min(width, columns) : width));
  const widths = [...natural];
  const widthAt = (column: number): number => widths[column] ?? 0;
  const total = (): number => shown.reduce((sum, column) => sum + widthAt(column) + gap, -gap);
  while (total() > columns) {
    const wide = shown.filter((column) => widthAt(column) > (least[column] ?? 0));
    const widest = Math.max(...wide.map(widthAt));
    const last = wide.findLast((column) => widthAt(column) === widest);
    if (last === undefined) break;
    widths[last] = widest - 1;
  }
  return widths;
}
