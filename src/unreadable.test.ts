import assert from "node:assert/strict";
import { test } from "node:test";
import { type CheckedColumn, checkDispatchable, instantOf, withPlaceholders } from "./unreadable.ts";

const columns: readonly CheckedColumn<string>[] = [
  { place: 0, field: "a", read: (cell) => JSON.parse(cell ?? ""), placeholder: "null" },
  { place: 2, field: "b", read: (cell) => JSON.parse(cell ?? ""), placeholder: "[]" },
];

test("only what cannot be read is replaced, and named", () => {
  assert.deepEqual(withPlaceholders(["1", "x", "{"], columns), { row: ["1", "x", "[]"], unreadable: ["b"] });
  assert.deepEqual(withPlaceholders(["{", "x", "{"], columns), {
    row: ["null", "x", "[]"],
    unreadable: ["a", "b"],
  });
  assert.deepEqual(withPlaceholders(["1", "x", "2"], columns), { row: ["1", "x", "2"], unreadable: [] });
});

test("an instant that no Date holds is the furthest one", () => {
  assert.equal(instantOf(1).getTime(), 1);
  for (const ms of [9e15, Number.POSITIVE_INFINITY]) assert.equal(instantOf(ms).getTime(), 8.64e15);
  for (const ms of [-9e15, Number.NaN]) assert.equal(instantOf(ms).getTime(), -8.64e15);
});

test("a job is not dispatched without its delivery and its schedule, but without its tags", () => {
  checkDispatchable({ id: "j" });
  checkDispatchable({ id: "j", unreadable: ["tags"] });
  for (const field of ["delivery", "schedule"])
    assert.throws(() => checkDispatchable({ id: "j", unreadable: ["tags", field] }), {
      code: "unreadable-row",
      message: new RegExp(`^unreadable: ${field};`),
    });
});
