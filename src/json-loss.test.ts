import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { jsonLoss } from "./json-loss.ts";

function loss(value: unknown): string | null {
  return jsonLoss(value, JSON.stringify(value));
}

class Invoice {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
}

describe("what JSON loses", () => {
  test("is named with its place", () => {
    const cases: readonly (readonly [unknown, string])[] = [
      [Number.NaN, "NaN"],
      [{ avg: 0 / 0 }, 'NaN at "avg"'],
      [[1, [Number.NEGATIVE_INFINITY]], '-Infinity at "1.0"'],
      [new Map([["a", 1]]), "a Map"],
      [{ orders: [{ items: new Set([1]) }] }, 'a Set at "orders.0.items"'],
      [{ at: new Date(Number.NaN) }, 'an invalid Date at "at"'],
      [{ error: new Error("no") }, 'an Error at "error"'],
      [{ value: Promise.resolve(1) }, 'a Promise at "value"'],
      [{ bytes: new Uint8Array([1, 2]) }, 'a Uint8Array at "bytes"'],
      [{ query: new URLSearchParams("a=1") }, 'a URLSearchParams at "query"'],
      [{ name: "null", pattern: /a/ }, 'a RegExp at "pattern"'],
      [new (class extends Map {})(), "a Map"],
      [{ "a\0b": Number.NaN }, 'NaN at "a\\u0000b"'],
      [{ odd: Object.assign(Object.create({ [Symbol.toStringTag]: "\0" })) }, 'an object at "odd"'],
    ];
    for (const [value, expected] of cases) assert.equal(loss(value), expected);
  });

  test("is not what JSON carries, or what says itself how it is written", () => {
    const kept: readonly unknown[] = [
      null,
      {},
      [],
      { a: null, b: undefined, c: [undefined], d: {} },
      "null {}",
      new Date(0),
      { day: new Date(0), none: null },
      new Invoice(1),
      { invoice: new Invoice(1), none: null },
      new (class Empty {})(),
      Object.create(null),
      runInNewContext("({ a: {}, b: [null] })"),
      Buffer.from("a"),
      { bytes: Buffer.from("{}"), none: null },
      { price: { amount: Number.NaN, toJSON: () => "1.00" }, none: null },
      { url: new URL("http://localhost/"), none: null },
    ];
    for (const value of kept) assert.equal(loss(value), null, JSON.stringify(value));
  });

  test("is found as deep as JSON can be written", () => {
    let deep: unknown = { avg: Number.NaN };
    for (let depth = 0; depth < 1_000; depth += 1) deep = [deep];
    assert.match(loss(deep) ?? "", /^NaN at "0\.0\.0\.[0.]+…"$/);
  });
});
