import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cut, piecesOf, visible } from "../dashboard/src/parts/visible.ts";

describe("strings from outside on the page", () => {
  test("what cannot be seen, or turns the direction of text, is a mark", () => {
    assert.equal(visible("a\u0000b\u001b[31m\u007f"), "a␀b␛[31m␡");
    assert.equal(visible("invoice\u202efdp.exe"), "invoice⟨U+202E⟩fdp.exe");
    for (const code of [0x85, 0xad, 0x61c, 0x200b, 0x200e, 0x2028, 0x2066, 0x2069, 0xfeff, 0xe0041, 0xd800])
      assert.match(visible(`x${String.fromCodePoint(code)}y`), /^x⟨U\+[0-9A-F]{4,5}⟩y$/, code.toString(16));
    assert.equal(visible("pay\u200dpal"), "pay⟨U+200D⟩pal", "a joiner between letters hides a word");
  });

  test("what can be seen stays as it is", () => {
    for (const text of ["<b>&amp;</b>", "żółć שלום 日本", "👩‍👩‍👧 👍🏽 ❤️‍🔥", "a b"])
      assert.equal(visible(text), text);
  });

  test("lines and tabs stay where lines are kept, and are marks elsewhere", () => {
    assert.equal(visible("a\n\tb\r", true), "a\n\tb␍");
    assert.equal(visible("a\n\tb"), "a␊␉b");
    assert.deepEqual(piecesOf("a\u0000"), [
      { text: "a", isMark: false },
      { text: "␀", isMark: true },
    ]);
  });

  test("a long one is cut between characters", () => {
    assert.equal(cut("abc", 3), "abc");
    assert.equal(cut("abcd", 3), "ab…");
    for (const most of [3, 4, 5, 6]) assert(cut("a👍b👍c👍", most).isWellFormed());
  });
});
