import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../log.ts";
import { acknowledged, refused } from "../publish-result.ts";
import type { Transport } from "../transport.ts";
import { Outlet } from "./outlet.ts";

test("an outlet tells when nothing gets through any more, once a minute, and when it does again", () => {
  const told: string[] = [];
  const tell = (fields: object, message: string): void => {
    told.push(`${message} ${"error" in fields ? fields.error : ""}`.trim());
  };
  const outlet = new Outlet({
    kind: "test",
    destination: "there",
    transport: {} as Transport,
    log: { ...silentLogger, warn: tell, info: tell },
  });
  const trouble = "nothing gets through; jobs wait for it down";
  outlet.heard([acknowledged], 0, 1);
  outlet.heard([refused("too large", { permanent: true })], 1, 2);
  assert.deepEqual(told, []);
  for (const atMs of [10, 1_000, 30_000, 59_000]) outlet.heard([refused("down")], atMs, atMs + 1);
  assert.deepEqual(told, [trouble]);
  outlet.heard([refused("down")], 70_000, 70_011);
  assert.deepEqual(told, [trouble, trouble]);
  outlet.heard([acknowledged, refused("down")], 80_000, 80_001);
  outlet.heard([acknowledged], 80_000, 80_002);
  assert.deepEqual(told, [trouble, trouble, "it gets through again"]);
});
