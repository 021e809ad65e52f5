import type { ClaimRef } from "../store/claims.ts";
import type { StoreAddress } from "../store/opening.ts";
import type { Sheet } from "./claim-table.ts";

export interface HeartbeatPlan {
  readonly address: StoreAddress;
  readonly namespace: string;
  readonly claimer: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly shared: BigInt64Array<SharedArrayBuffer>;
}

export type HeartbeatMessage =
  /** More memory for claims. */
  { readonly kind: "sheet"; readonly sheet: Sheet } | { readonly kind: "stop" };

export type HeartbeatReport =
  | { readonly kind: "ready" | "stopped" }
  | { readonly kind: "renewed"; readonly claims: readonly ClaimRef[]; readonly sentAtMs: number }
  | { readonly kind: "stale" | "cancel"; readonly claims: readonly ClaimRef[] }
  | { readonly kind: "error"; readonly error: unknown };

/** Places in the memory that both threads share, each an instant in microseconds of the monotonic clock. */
export const sharedPulse = 0;
export const sharedSentAt = 1;
export const sharedLength = 2;

export function micros(ms: number): bigint {
  return BigInt(Math.floor(ms * 1_000));
}

export function millis(us: bigint): number {
  return Number(us) / 1_000;
}
