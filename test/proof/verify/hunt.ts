import { deliveries } from "../../../src/job.ts";
import { type VerifyResult, verify } from "../../../src/proof/run.ts";
import type { ViolationKind } from "../../../src/proof/violation.ts";
import { testbed } from "../../../testbed/index.ts";
import type { Bug } from "./bugs.ts";

export interface Hunt {
  readonly bug: string;
  /** How often each kind was found. */
  readonly found: Readonly<Partial<Record<ViolationKind, number>>>;
  readonly caught: boolean;
  readonly result: VerifyResult;
}

/** The product as it is: run in the nodes, or published. */
export const soundRuns = [
  { name: "none: the product as it is", routed: false, faults: ["kill", "pause"] },
  { name: "none: the relay as it is", routed: true, faults: ["kill", "pause", "publish"] },
] as const satisfies Pick<Bug, "name" | "routed" | "faults">[];

/** Runs a product with a bug in it, or as it is, long enough for a bug to show. */
export async function hunt(bug: Bug | (typeof soundRuns)[number], seed: number): Promise<Hunt> {
  const isSound = !("store" in bug);
  const { slowMs = 400, durationMs = 4_000, perSecond = 75 }: Partial<Bug> = bug;
  const result = await verify({
    store: null,
    to: bug.routed === true ? { url: await redisUrl() } : null,
    deliveries,
    faults: bug.faults,
    nodes: 3,
    jobs: (durationMs / 1_000) * perSecond,
    durationMs,
    seed,
    leaseMs: 1_500,
    pollMs: 100,
    concurrency: 10,
    slow: { percent: 40, ms: slowMs },
    // What a bug has lost does not come back, and the hunt is for many bugs.
    ...(isSound ? {} : { patienceMs: 3_500 }),
    ...(isSound ? {} : { tampering: { module: new URL("./bugs.ts", import.meta.url).href, bug: bug.name } }),
  });
  const found: Partial<Record<ViolationKind, number>> = {};
  for (const { kind } of result.verdict.violations) found[kind] = (found[kind] ?? 0) + 1;
  const caught = isSound ? result.verdict.valid : bug.breaks.some((kind) => found[kind] !== undefined);
  return { bug: bug.name, found, caught, result };
}

/** The quickest broker to start; nobody harms it, so that all runs share it. */
async function redisUrl(): Promise<string> {
  const server = await testbed.redis();
  if (server.skip !== false) throw new Error(server.skip);
  return server.url;
}
