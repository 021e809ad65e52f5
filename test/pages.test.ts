import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../src/cli/program.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The string literals of a declaration, from its first line to the first semicolon. */
function literalsOf(path: string, declaration: string): string[] {
  const code = read(path);
  const start = code.indexOf(declaration);
  assert.notEqual(start, -1, `${path} has no ${declaration}`);
  return [...code.slice(start, code.indexOf(";", start)).matchAll(/"([^"]+)"/g)].map(([, one = ""]) => one);
}

/** The code in the first column of the tables of a page. */
function firstColumn(page: string): string[] {
  return [...read(page).matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one),
  );
}

const missing = (all: readonly string[], found: readonly string[]): string[] =>
  all.filter((one) => !found.includes(one));

test("docs/ERRORS.md explains every code, and no other", () => {
  const codes = literalsOf("src/errors.ts", "export type ErrorCode =");
  const explained = firstColumn("docs/ERRORS.md");
  assert.deepEqual(missing(codes, explained), [], "not explained");
  assert.deepEqual(missing(explained, codes), [], "explained, but no such code");
  const problems = literalsOf("src/api/problem.ts", "export type ProblemCode =");
  assert.deepEqual(
    problems.filter((code) => !read("docs/ERRORS.md").includes(`\`${code}\``)),
    [],
    "codes of the HTTP API that are not named",
  );
});

test("the words of docs/GLOSSARY.md are in alphabetical order, each once", () => {
  const words = [...read("docs/GLOSSARY.md").matchAll(/^\| ([^|]+?) \|/gm)]
    .map(([, word = ""]) => word)
    .filter((word) => word !== "word" && word !== "---");
  assert(words.length > 100, "the table was not found");
  const sorted = [...new Set(words)].toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  assert.deepEqual(words, sorted);
});

test("docs/PRODUCTION.md has every setting, and every variable that sets one", () => {
  const page = firstColumn("docs/PRODUCTION.md");
  assert.deepEqual(missing(literalsOf("src/settings.ts", "const optionKeys ="), page), []);
  const variables = literalsOf("src/settings.ts", "const environmentKeys =");
  assert.deepEqual(
    variables.filter((name) => !read("docs/PRODUCTION.md").includes(`\`${name}\``)),
    [],
  );
});

test("docs/CLI.md has every command, and no other", () => {
  const leaves = (command: Command): string[] =>
    command.commands.flatMap((one) => {
      const below = one.commands.filter((inner) => inner.name() !== "help");
      const isGroup = below.length > 0 && !["dead", "lost"].includes(one.name());
      return isGroup ? leaves(one).map((inner) => `${one.name()} ${inner}`) : [one.name()];
    });
  const commands = leaves(createProgram());
  const named = firstColumn("docs/CLI.md").map((one) => one.replace(/ [<[].*| bash.*/, ""));
  assert.deepEqual(missing(commands, named), [], "not on the page");
  assert.deepEqual(missing(named, commands), [], "on the page, but no such command");
});
