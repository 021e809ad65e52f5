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
/** Where even that does not fit, a row stays one line all the same. */
const tightest = 3;
/** Where nothing is cut, cells are padded up to this. */
const widestPadding = 60;

export interface TableOptions {
  /** Headings of columns that are cut only when nothing else is left to cut: what a person copies. */
  readonly whole?: readonly string[];
  /** @default those of the terminal */
  readonly columns?: number;
}

/**
 * Rows under headings, each column as wide as it must be; numbers are right-aligned. Where the terminal is too narrow, the widest columns
 * give way, the last of them first.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  { whole = [], columns = columnsOf() }: TableOptions = {},
): Line[] {
  const texts = rows.map((row) => headings.map((_, column) => printable(textOf(row[column] ?? ""))));
  const natural = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...texts.map((row) => widthOf(row[column] ?? ""))),
  );
  const numeric = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number"),
  );
  const least = headings.map((heading) => Math.max(leastWidth, widthOf(heading)));
  const kept = headings.map((heading, column) => (whole.includes(heading) ? natural : least)[column] ?? 0);
  // Where nothing has to fit, one long cell must not push every other row to the right.
  const isCut = Number.isFinite(columns);
  const widths = isCut
    ? [kept, least, headings.map(() => tightest)].reduce(
        (wide, floor) => narrowed(wide, floor, columns),
        natural as number[],
      )
    : natural.map((width) => Math.min(width, widestPadding));
  const line = (cells: readonly string[], styleOf: (column: number) => Style | null): Line =>
    cells.flatMap((cell, column) => {
      // Ids that were made at about the same time begin alike: their ends differ.
      const cut = whole.includes(headings[column] ?? "") && cells !== headings ? cutStart : cutTo;
      const text = pad(
        isCut ? cut(cell, widths[column] ?? 0) : cell,
        widths[column] ?? 0,
        numeric[column] ? "start" : "end",
      );
      const style = styleOf(column);
      const painted = style === null ? text : new Painted(text, style);
      return column === 0 ? [painted] : [" ".repeat(gap), painted];
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

function textOf(cell: Cell): string {
  return cell instanceof Painted ? cell.text : String(cell);
}

function narrowed(natural: readonly number[], least: readonly number[], columns: number): number[] {
  const widths = [...natural];
  const total = (): number => widths.reduce((sum, width) => sum + width, 0) + gap * (widths.length - 1);
  while (total() > columns) {
    const room = widths.map((width, column) => width - (least[column] ?? 0));
    const most = Math.max(...room);
    if (most <= 0) break;
    const widest = Math.max(...widths.filter((_, column) => (room[column] ?? 0) > 0));
    const column = widths.findLastIndex((width, index) => width === widest && (room[index] ?? 0) > 0);
    widths[column] = widest - 1;
  }
  return widths;
}
