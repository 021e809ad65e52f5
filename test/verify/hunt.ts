import { deliveries } from "../../src/job.ts";
import { type VerifyResult, verify } from "../../src/verify/run.ts";
import type { ViolationKind } from "../../src/verify/violation.ts";
import type { Bug } from "./bugs.ts";

export interface Hunt {
  readonly bug: string;
  /** How often each kind was found. */
  readonly found: Readonly<Partial<Record<ViolationKind, number>>>;
  readonly caught: boolean;
  readonly result: VerifyResult;
}

/** Runs a product with a bug in it, long enough for the bug to show; null: the product as it is. */
export async function hunt(bug: Bug | null, seed: number): Promise<Hunt> {
  const result = await verify({
    store: null,
    deliveries,
    faults: bug?.faults ?? ["kill", "pause"],
    nodes: 3,
    jobs: 300,
    durationMs: 4_000,
    seed,
    leaseMs: 1_500,
    pollMs: 100,
    concurrency: 10,
    slow: { percent: 40, ms: bug?.slowMs ?? 400 },
    ...(bug === null
      ? {}
      : { tampering: { module: new URL("./bugs.ts", import.meta.url).href, bug: bug.name } }),
  });
  const found: Partial<Record<ViolationKind, number>> = {};
  for (const { kind } of result.verdict.violations) found[kind] = (found[kind] ?? 0) + 1;
  const caught = bug?.breaks.some((kind) => found[kind] !== undefined) ?? result.verdict.valid;
  return { bug: bug?.name ?? "none: the product as it is", found, caught, result };
}
