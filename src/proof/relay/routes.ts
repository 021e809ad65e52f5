import { createHash } from "node:crypto";
import type { Route } from "../../message/transport.ts";
import { loadBroker } from "../brokers/target.ts";
import type { RoutePlan } from "../node-plan.ts";

/** Sender and receiver of a run are both its own. */
export function secretOf(topic: string): string {
  return `whsec_${createHash("sha256").update(topic).digest("base64")}`;
}

/** The route of every job of a run. */
export async function routeOf({ kind, url, topic, dispatchTimeoutMs }: RoutePlan): Promise<Route> {
  if (kind !== "http") return (await loadBroker(kind)).route({ url, topic, dispatchTimeoutMs });
  const { http } = await import("../../transports/http/index.ts");
  const within = { requestTimeout: dispatchTimeoutMs, dispatchTimeout: dispatchTimeoutMs };
  return http({ url, secret: secretOf(topic), allow: ["127.0.0.1"], ...within });
}
