// One relay process of a takeover, which is killed or takes over. It tells its parent when it first publishes.

import { createEscapement, defineJob } from "../../../src/index.ts";
import { silentLogger } from "../../../src/log.ts";
import { type BrokerName, brokers } from "./broker.ts";

export interface TakeoverPlan {
  readonly store: string;
  readonly namespace: string;
  readonly to: BrokerName;
  readonly broker: string;
  readonly topic: string;
  readonly leaseMs: number;
  readonly inFlight: number;
}

/** What a relay process says to its parent. */
export type NodeWord =
  | { readonly kind: "published"; readonly atMs: number }
  /** A machine that is too busy lets a lease run out: what was named under it fires again, as after a death. */
  | { readonly kind: "lost" };

const plan: TakeoverPlan = JSON.parse(process.argv[2] ?? "{}");
const job = defineJob<number>({
  name: "task",
  route: brokers[plan.to].route(plan.broker, plan.topic),
});
const app = createEscapement({
  store: plan.store,
  namespace: plan.namespace,
  jobs: [job],
  lease: plan.leaseMs,
  relay: { inFlight: plan.inFlight },
  acceptWeakDurability: true,
  log: silentLogger,
});
let hasPublished = false;
app.on("published", () => {
  if (hasPublished) return;
  hasPublished = true;
  tell({ kind: "published", atMs: Date.now() });
});
app.on("partition", ({ change }) => {
  if (change === "lost") tell({ kind: "lost" });
});
app.on("error", ({ error, during }) => console.error(during, String(error)));
// A parent that is gone wants nothing more.
process.on("disconnect", () => process.exit());
await app.start({ roles: ["relay"] });

function tell(word: NodeWord): void {
  process.send?.(word);
}
