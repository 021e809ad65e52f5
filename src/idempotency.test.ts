import assert from "node:assert/strict";
import { test } from "node:test";
import { idempotencyKey } from "./idempotency.ts";

const fireAt = new Date("2026-11-15T03:00:00.000Z");

test("a schedule and its time always give the same key (test vector) [K3]", () => {
  assert.equal(
    idempotencyKey({
      namespace: "billing",
      id: "nightly@2026-11-15T03:00:00.000Z",
      schedule: "nightly",
      fireAt,
    }),
    "842a8ac2fa33fd88db347e2f926134545aaa6a20b36d6d769067c19b4da88c33",
  );
});

test("any other job's key rests on its id alone (test vector) [K3]", () => {
  for (const when of [fireAt, new Date(0)]) {
    assert.equal(
      idempotencyKey({ namespace: "billing", id: "invoice:42:2026-11", schedule: null, fireAt: when }),
      "f5ef8fa4db95e9cea293e5da3e8be21b935a5892803b751df2564ef578f60ba8",
    );
  }
});
