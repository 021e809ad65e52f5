import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, test } from "node:test";
import { newFolder } from "./behaviour/stores.ts";

const demo = join(import.meta.dirname, "../examples/demo/index.ts");

function start(...args: string[]) {
  const child = spawn(process.execPath, [demo, ...args], {
    cwd: newFolder(),
    env: { ...process.env, NO_COLOR: "1" },
  });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  child.stderr.on("data", (data) => {
    output += data;
  });
  return { child, ended: once(child, "close"), output: () => output };
}

describe("the demo", () => {
  test("--for: it shows each kind of event, stops by itself, prints totals and exits 0", async () => {
    const { ended, output } = start("--for", "5s");
    assert.deepEqual(await ended, [0, null]);
    const lines = output();
    for (const line of [
      /started +send-sms .*at-most-once/,
      /started +resize-image .*at-least-once, try 2/,
      /started +book-invoice .*effectively-once/,
      /failed +resize-image .*again in/,
      /snoozed +wait-for-report/,
      /dead +import-feed .*is gone/,
      /succeeded +book-invoice .*booked/,
      /succeeded +roll-up .*sales up to/,
      /^totals .*waiting.*succeeded.*dead/m,
    ]) {
      assert.match(lines, line);
    }
  });

  test("Ctrl-C stops it gracefully, also when the signal arrives twice, as npm does it", async () => {
    const { child, ended, output } = start();
    while (!/succeeded/.test(output())) await once(child.stdout, "data");
    child.kill("SIGINT");
    child.kill("SIGINT");
    assert.deepEqual(await ended, [0, null]);
    assert.match(output(), /stopping[\s\S]*totals/);
  });

  test("nonsense gets one clear line and the usage", async () => {
    for (const args of [
      ["--for", "soon"],
      ["--fro", "5s"],
    ]) {
      const { ended, output } = start(...args);
      assert.deepEqual(await ended, [2, null]);
      assert.match(output(), /usage: npm start/);
    }
  });
});
