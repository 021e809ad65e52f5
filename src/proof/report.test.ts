import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FaultKind } from "../verify-report.ts";
import { check } from "./checker.ts";
import type { History } from "./history.ts";
import { published, relayed, routed } from "./relay/test/hand-made.ts";
import { reportLines } from "./report.ts";
import { fault } from "./test/hand-made.ts";

function lines(faults: readonly FaultKind[], history: History): string[] {
  const options = {
    store: null,
    deliveries: ["at-least-once"],
    faults,
    nodes: 4,
    jobs: 1,
    durationMs: 1_000,
    seed: 7,
    leaseMs: 1_000,
    pollMs: 100,
    concurrency: 2,
  } as const;
  const run = { history, verdict: check(history), engine: "E 1", beganAtMs: 0, troubles: [] };
  return reportLines(options, run);
}

function header(faults: readonly FaultKind[], history: History): string {
  return lines(faults, history)[0] ?? "";
}

describe("the report of verify", () => {
  test("its header tells of every fault, and of the drill what it did", () => {
    const struck = [...published("j", 1, 50, { how: "refused", drilled: true }), ...published("j", 2, 1_200)];
    const drilled = relayed(routed("j", "at-least-once", { relay: struck }));
    assert.match(
      header(["publish"], drilled),
      /, faults: a drill that made 1 publishes and 0 writes around them fail, seed 7$/,
    );
    const both = { ...drilled, faults: [fault("kill", "1.1", 65)] };
    assert.match(header(["kill", "publish"], both), /, faults: 1 kill, a drill that made 1 publishes/);
    assert.match(header([], relayed(routed("j", "at-least-once"))), /, faults: none, seed 7$/);
  });

  test("a guarantee is kept, or what broke it is counted: no line says of jobs both that none and that some were lost", () => {
    const [, kept = ""] = lines([], relayed(routed("j", "at-least-once")));
    assert.match(kept, /^ {2}at-least-once +kept; 1 jobs: /);
    assert.doesNotMatch(kept, /lost/);
  });
});
