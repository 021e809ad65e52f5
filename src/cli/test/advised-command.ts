import assert from "node:assert/strict";
import { createProgram } from "../program.ts";

/** Reads a line as a shell would, as far as our own commands go: words, and quotes. */
export function shellWords(line: string): string[] {
  const words = line.match(/(?:\\'|'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|"([^"]*)"|\\(')/g,
      (_, single, double, escaped) => single ?? double ?? escaped,
    ),
  );
}

/** The command at the end of an advice, as words; null if there is none. */
export function commandIn(advice: string | null): string[] | null {
  const at = advice === null ? -1 : advice.search(/\bescapement (?=[a-z])/);
  return advice === null || at === -1 ? null : shellWords(advice.slice(at)).slice(1);
}

/** Asserts that our own parser takes a command, to its last word. */
export function assertParses(words: readonly string[], isWhole = true): void {
  let command = createProgram();
  let rest = [...words];
  for (;;) {
    const next = command.commands.find((one) => one.name() === rest[0]);
    if (next === undefined) break;
    command = next;
    rest = rest.slice(1);
  }
  const line = `escapement ${words.join(" ")}`;
  assert.notEqual(command.parent, null, `${line} is no command`);
  const { operands, unknown } = command.parseOptions(rest);
  assert.deepEqual(unknown, [], `${line} has options that there are not`);
  const required = command.registeredArguments.filter((one) => one.required).length;
  const isVariadic = command.registeredArguments.some((one) => one.variadic);
  assert(!isWhole || operands.length >= required, `${line} names too little`);
  assert(isVariadic || operands.length <= command.registeredArguments.length, `${line} names too much`);
}

/** An advice never speaks of the API where there is a command, and its command is one. */
export function assertPasteable(advice: string | null): void {
  assert.doesNotMatch(advice ?? "", /app\.(?!start\b)/, `${advice} is no command`);
  const words = commandIn(advice);
  if (words !== null) assertParses(words);
}
