import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../../test/scratch.ts";
import { createEscapement } from "../index.ts";
import { check } from "../proof/checker.ts";
import { relayed, routed } from "../proof/relay/test/hand-made.ts";
import { reportSummary } from "../proof/report.ts";
import { memory } from "../stores/memory/index.ts";
import { writeVerifyReport } from "../verify-report.ts";
import { createApi } from "./create-api.ts";

test("the last report of verify is served as it was written, and one that cannot be read is named", async () => {
  const file = join(scratchFolder("verify-report"), "escapement-verify.json");
  await using app = createEscapement({ store: memory(), jobs: [] });
  const api = createApi(app, { insecure: true, verifyReport: file });
  const ask = async (): Promise<unknown> =>
    (await api(new Request("http://localhost/verify"), { address: "127.0.0.1" })).json();
  assert.deepEqual(await ask(), { report: null, problem: null });
  const history = relayed(routed("j", "at-least-once"));
  const options = {
    ...{
      store: null,
      deliveries: ["at-least-once" as const],
      faults: [],
      nodes: 4,
      jobs: 1,
      durationMs: 1_000,
    },
    ...{ seed: 7, leaseMs: 1_000, pollMs: 100, concurrency: 2 },
  } as const;
  const result = { history, verdict: check(history), engine: "E 1", beganAtMs: 0, troubles: [] };
  const report = reportSummary(options, result, new Date("2026-11-15T03:00:00Z"));
  assert.equal(report.valid, true);
  writeVerifyReport(file, report);
  assert.deepEqual(await ask(), { report, problem: null });
  writeFileSync(file, '{"valid": "perhaps"}');
  const problem = "it is not a report of escapement verify; run it again";
  assert.deepEqual(await ask(), { report: null, problem });
  api.close();
});
