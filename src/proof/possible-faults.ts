import { type FaultKind, faultKinds } from "../verify-report.ts";
import { brokerTarget } from "./brokers/target.ts";
import type { VerifyOptions } from "./run.ts";
import { storeTarget } from "./store-kind.ts";

/** What can be done to a run on this store, and with this broker. */
export function possibleFaults({
  store,
  to,
  restart,
}: Pick<VerifyOptions, "store" | "to" | "restart">): readonly FaultKind[] {
  const network = store !== null && storeTarget(store).proxied !== null;
  const target = to === null || to === undefined ? null : brokerTarget(to.url);
  const broker = target !== null && (target.proxied || to?.proxy !== undefined);
  const isPossible: Readonly<Partial<Record<FaultKind, boolean>>> = {
    network,
    restart: restart !== undefined,
    broker,
    both: network && broker,
    "broker-restart": target?.kind === "http" || to?.restart !== undefined,
    publish: target !== null,
  };
  return faultKinds.filter((kind) => isPossible[kind] ?? true);
}
