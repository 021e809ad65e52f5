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

test("a record is one line, however many fields it has, but for the stack of an error", (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const job = { job: "0197a1b2-0000-7000-8000-000000000000", name: "send-the-monthly-invoice", attempt: 5 };
  consoleLogger.warn({ ...job, tags: ["a", { b: { c: 1 } }] }, "job is dead after attempt 5: Error: no");
  consoleLogger.warn({ error: new Error("no") }, "careful");
  const [dead = "", failed = ""] = warn.mock.calls.map((call) => String(call.arguments[0]));
  assert.match(dead, /^escapement: job is dead .* { job: '0197[^\n]*', [^\n]*, attempt: 5, tags: .* }$/);
  assert.match(failed, /^escapement: careful {\s+error:\s+Error: no\n +at /);
});
