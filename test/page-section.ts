import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** Puts a text in the place of an earlier one of that name, or at the end: a page of figures is written by several commands, each its own part. */
export function writeSection(file: string, name: string, text: string): void {
  const page = existsSync(file) ? readFileSync(file, "utf8") : "";
  writeFileSync(file, withSection(page, name, text));
}

export function withSection(page: string, name: string, text: string): string {
  const [open, close] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const section = `${open}\n${text.trim()}\n${close}`;
  const [start, end] = [page.indexOf(open), page.indexOf(close)];
  if (start < 0 || end < start) return `${page.trimEnd()}\n\n${section}\n`.trimStart();
  return page.slice(0, start) + section + page.slice(end + close.length);
}
