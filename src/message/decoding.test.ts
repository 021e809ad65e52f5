import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeMessage } from "./decoding.ts";

const encoded = (body: Uint8Array) => ({ key: () => "k", headers: () => ({ a: "b" }), body: () => body });

test("a body that no string could hold is dead with the reason, and keeps the rest", () => {
  // Zeros are UTF-8; with another byte they are not, and would be kept as base64.
  for (const last of [0, 0xff]) {
    const body = new Uint8Array(129 * 1_048_576);
    body[body.length - 1] = last;
    const { message, unreadable } = decodeMessage(encoded(body));
    assert.match(unreadable?.message ?? "", /expected a body of at most 134217728 bytes, got 135266304/);
    assert.deepEqual(message, { key: "k", headers: { a: "b" }, body: "" });
  }
});

test("a body that is not UTF-8 is kept as base64", () => {
  const { message, unreadable } = decodeMessage(encoded(new Uint8Array([0xff, 0xfe])));
  assert.match(unreadable?.message ?? "", /the body is not UTF-8/);
  assert.equal(message.body, "//4=");
});
