import assert from "node:assert/strict";
import { test } from "node:test";
import { consoleLogger } from "./log.ts";

test("a line of the console ends with its fields, and not with {} where it has none", (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  consoleLogger.warn({}, "careful");
  consoleLogger.warn({ queue: "mail" }, "careful");
  assert.deepEqual(
    warn.mock.calls.map((call) => call.arguments),
    [["escapement: careful"], ["escapement: careful { queue: 'mail' }"]],
  );
});
