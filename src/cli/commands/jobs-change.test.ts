import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { createEscapement, defineJob, Operations } from "../../index.ts";
import { memory } from "../../stores/memory/index.ts";
import { type Change, cancel } from "../changes.ts";
import { changeAll } from "./jobs-change.ts";

const later = defineJob<number>({ name: "later" });

/** Cancels, and says whether it has begun to; somebody presses Ctrl-C while it counts. */
function interrupted(begun: string[]): Change {
  return {
    ...cancel,
    all: (operations, filter, act, options) => {
      begun.push(options.dryRun === true ? "count" : "cancel");
      const task = operations.cancelAll(filter, act, options);
      if (options.dryRun === true) queueMicrotask(() => process.emit("SIGINT"));
      return task;
    },
  };
}

describe("Ctrl-C while a bulk command counts changes nothing", () => {
  afterEach(() => {
    process.exitCode = undefined;
    // What waits for a second Ctrl-C.
    process.removeAllListeners("SIGINT");
  });

  for (const flags of [{}, { dryRun: true }, { json: true }]) {
    for (const count of [1, 3]) {
      test(`${count} matching, ${JSON.stringify(flags)}`, async () => {
        await using app = createEscapement({ store: memory(), jobs: [later] });
        for (let n = 0; n < count; n += 1) await app.enqueue(later, n, { delay: "1h" });
        const begun: string[] = [];
        await changeAll(new Operations(app), interrupted(begun), { names: ["later"] }, flags);
        assert.deepEqual(begun, ["count"]);
        assert.equal(process.exitCode, 130);
        assert.equal(await app.count({ states: ["waiting"] }), count);
      });
    }
  }
});

test("a filter that matches nothing is counted, and that is all", async () => {
  await using app = createEscapement({ store: memory(), jobs: [later] });
  const begun: string[] = [];
  const counting: Change = {
    ...interrupted(begun),
    all: (operations, filter, act, options) => {
      begun.push(options.dryRun === true ? "count" : "cancel");
      return operations.cancelAll(filter, act, options);
    },
  };
  await changeAll(new Operations(app), counting, { names: ["later"] }, {});
  assert.deepEqual(begun, ["count"]);
});
