import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveOptions, whereOf } from "./options.ts";

test("addresses that cannot be meant are refused, without repeating them", () => {
  for (const url of [
    "redis://myhost:abc",
    "redis://:secret@myhost:70000",
    "redis://user:50%@myhost",
    "redis+cluster://a:6379,b:x",
    "redis://",
    "http://myhost",
  ]) {
    assert.throws(
      () => resolveOptions({ url }),
      (error: Error & { code?: string }) =>
        error.code === "invalid-option" && !error.message.includes("secret"),
      url,
    );
  }
});

test("a host alone, with a port, in brackets, or none at all is where it says", () => {
  for (const [url, host, port] of [
    ["redis://myhost", "myhost", 6_379],
    ["redis://:6380", "localhost", 6_380],
    ["rediss://u:p%25@[::1]:7000/3", "::1", 7_000],
  ] as const)
    assert.deepEqual(resolveOptions({ url }).connection.nodes, [{ host, port }]);
});

test("errors name TLS where it is used: a server without it is only silent", () => {
  const named = (url: string): string => whereOf(resolveOptions({ url }).connection);
  assert.equal(named("redis://myhost"), "myhost:6379");
  assert.equal(named("rediss://myhost"), "myhost:6379 over TLS");
});
