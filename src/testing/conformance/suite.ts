import { after, before, describe, test as nodeTest } from "node:test";
import { acrossSlotsReason, needsAcrossSlots } from "./across-slots.ts";
import { afterTests } from "./after.ts";
import { aheadTests } from "./ahead.ts";
import { allOrNoneTests } from "./all-or-none.ts";
import { batchTests } from "./batches.ts";
import { cancelTests, redriveTests, updateTests } from "./change.ts";
import { checkpointTests } from "./checkpoint.ts";
import { claimOrderTests, claimRepeatTests } from "./claim-order.ts";
import { concurrencyTests } from "./concurrency.ts";
import { countTests } from "./counts.ts";
import { endTests } from "./ends.ts";
import { enqueueTests } from "./enqueue.ts";
import { finishTests, staleTests } from "./finish.ts";
import { fireTests } from "./fire.ts";
import { fragileTests } from "./fragile.ts";
import type { ConformanceHarness, ConformanceOptions } from "./harness.ts";
import { healthTests } from "./health.ts";
import { historyTests } from "./history.ts";
import { isolationTests } from "./isolation.ts";
import { keyLimitTests, limitTests, usageTests } from "./limits.ts";
import { namespaceTests } from "./namespaces.ts";
import { noticeTests } from "./notices.ts";
import { auditTests, depthTests, noteTests, scanTests } from "./operations.ts";
import { cutTests, duePlaceTests, partitionTests } from "./partitions.ts";
import { policyTests } from "./policy.ts";
import { pruneTests } from "./prune.ts";
import { listTests, trailTests } from "./questions.ts";
import { nodeTests, queueTests } from "./queues-and-nodes.ts";
import { expireTests, reapTests } from "./reap.ts";
import { removeTests } from "./remove.ts";
import { retentionTests } from "./retention.ts";
import { type ConformanceTest, Scene } from "./scene.ts";
import { scheduleTests } from "./schedules.ts";
import { extendTests, stepTests } from "./step.ts";
import { transactTests } from "./transact.ts";
import { debounceTests, uniqueTests } from "./unique-and-debounce.ts";

const concerns: Readonly<Record<string, (test: ConformanceTest) => void>> = {
  health: healthTests,
  enqueue: enqueueTests,
  unique: uniqueTests,
  debounce: debounceTests,
  after: afterTests,
  "all or none": allOrNoneTests,
  "claim order": claimOrderTests,
  "claim repeated": claimRepeatTests,
  "limits of queues": limitTests,
  "limits of keys, and lanes": keyLimitTests,
  "usage of limits": usageTests,
  "claims ahead": aheadTests,
  fragile: fragileTests,
  finish: finishTests,
  policy: policyTests,
  "stale and repeated finishes": staleTests,
  step: stepTests,
  extend: extendTests,
  reap: reapTests,
  expire: expireTests,
  cancel: cancelTests,
  update: updateTests,
  redrive: redriveTests,
  "list and count": listTests,
  "counts and recounts": countTests,
  "trail and report": trailTests,
  scan: scanTests,
  "scan by end": endTests,
  depths: depthTests,
  notes: noteTests,
  "audit log": auditTests,
  history: historyTests,
  queues: queueTests,
  nodes: nodeTests,
  schedules: scheduleTests,
  fire: fireTests,
  partitions: partitionTests,
  "more partitions": cutTests,
  "due places": duePlaceTests,
  checkpoint: checkpointTests,
  prune: pruneTests,
  "retention of a job's own": retentionTests,
  remove: removeTests,
  transact: transactTests,
  namespaces: namespaceTests,
  "isolation of namespaces": isolationTests,
  notices: noticeTests,
  concurrency: concurrencyTests,
  batches: batchTests,
};

/** What a store needs to run jobs at all: the place to begin for the author of a new one. */
const core: readonly string[] = [
  "health",
  "enqueue",
  "claim order",
  "claim repeated",
  "finish",
  "stale and repeated finishes",
  "step",
  "extend",
  "reap",
];

/**
 * Says in tests what the store contract says in words. A store that passes may call itself a store.
 *
 * @example
 * storeConformance({ name: "mine", open: () => openHarness() });
 */
export function storeConformance({ name, open, only, everyNth = 1 }: ConformanceOptions): void {
  const part = only === "core" ? "the core of the store contract" : "the store contract";
  describe(`${name} keeps ${part}`, () => {
    let harness: ConformanceHarness;
    let [scenes, tests] = [0, 0];
    before(async () => {
      harness = await open();
    });
    after(() => harness.close());
    const testOf =
      (concern: string): ConformanceTest =>
      (title, run, needs) => {
        tests += 1;
        if (tests % everyNth !== 0) return;
        nodeTest(title, async (context) => {
          scenes += 1;
          const namespace = `conformance-${scenes}`;
          const scene = new Scene(harness, namespace, await harness.open(namespace));
          try {
            if (needs !== undefined && scene.store.capabilities[needs.capability] === false)
              context.skip(needs.because);
            else if (!scene.store.capabilities.acrossSlots && needsAcrossSlots(concern, title))
              context.skip(acrossSlotsReason);
            else await run(scene);
          } finally {
            await scene.close();
          }
        });
      };
    for (const [concern, testsOf] of Object.entries(concerns)) {
      if (only === undefined || core.includes(concern)) describe(concern, () => testsOf(testOf(concern)));
    }
  });
}
