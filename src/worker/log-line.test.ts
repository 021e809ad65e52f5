import assert from "node:assert/strict";
import { test } from "node:test";
import { logLine } from "./log-line.ts";

test("a log line says what was given, on one line", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const lines: readonly (readonly [unknown, string])[] = [
    ["text", "text"],
    [5n, "5"],
    [undefined, "undefined"],
    [null, "null"],
    [{ a: 1, b: [{ c: "x".repeat(80) }] }, `{ a: 1, b: [ { c: '${"x".repeat(80)}' } ] }`],
    [[1, { a: 1 }], "[ 1, { a: 1 } ]"],
    [{ a: { b: { c: { d: 1 } } } }, "{ a: { b: { c: [Object] } } }"],
    [new Map([["a", 1]]), "Map(1) { 'a' => 1 }"],
    [cycle, "<ref *1> { self: [Circular *1] }"],
    [Object.create(null), "[Object: null prototype] {}"],
    [new Error("no"), "Error: no"],
    [new URL("http://localhost/"), "http://localhost/"],
  ];
  for (const [value, line] of lines) assert.equal(logLine(value), line);
});
