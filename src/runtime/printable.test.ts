import assert from "node:assert/strict";
import { test } from "node:test";
import { printable, printableJson } from "./printable.ts";

const hostile = "\u001b[2J\u009b31m\u0007\u007f\u0000\r\n\t\u202e\u2066\u200f\u061c\u2028\u{e0041}";

test("control characters, direction marks and line breaks are shown as escapes, once", () => {
  const shown = printable(hostile);
  assert.match(shown, /^[\x20-\x7e]+$/);
  assert.equal(
    shown,
    "\\u001b[2J\\u009b31m\\u0007\\u007f\\u0000\\r\\n\\t\\u202e\\u2066\\u200f\\u061c\\u2028\\udb40\\udc41",
  );
  assert.equal(printable(shown), shown);
});

test("letters of every script and emoji stay as they are", () => {
  const text = "naïve Ωμέγα שלום مرحبا 日本語 👩‍👩‍👧 🏳️‍🌈 C:\\dir";
  assert.equal(printable(text), text);
});

test("JSON means the same, and holds nothing raw", () => {
  const value = { [hostile]: [hostile, "naïve 👩‍👩‍👧"] };
  const json = printableJson(value, undefined, 2);
  assert.deepEqual(JSON.parse(json), value);
  assert.doesNotMatch(json.replaceAll("\n", ""), /[\p{Cc}\u202e\u2066\u2028]/u);
  assert.equal(printableJson(undefined), "null");
});
