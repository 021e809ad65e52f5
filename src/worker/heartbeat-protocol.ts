import type { ClaimRef, StoreAddress } from "../store.ts";
import type { Renewal } from "./renewer.ts";

export interface HeartbeatPlan {
  readonly address: StoreAddress;
  readonly namespace: string;
  readonly claimer: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly shared: BigInt64Array<SharedArrayBuffer>;
}

/** Claims travel as columns: lists of texts and numbers cross between threads at half the price of a list of objects. */
export type HeartbeatMessage =
  | {
      readonly kind: "claims";
      readonly held: Columns<Renewal>;
      readonly dropped: Columns<ClaimRef>;
      readonly heldAtMs: number;
    }
  | { readonly kind: "stop" };

type Columns<Row> = { readonly [Name in keyof Row]: readonly Row[Name][] };

export type HeartbeatNews =
  | { readonly kind: "ready" | "stopped" }
  | { readonly kind: "renewed"; readonly claims: readonly ClaimRef[]; readonly sentAtMs: number }
  | { readonly kind: "stale" | "cancel"; readonly claims: readonly ClaimRef[] }
  | { readonly kind: "error"; readonly error: unknown };

/** Places in the memory that both threads share, each an instant in microseconds of the monotonic clock. */
export const sharedPulse = 0;
export const sharedSentAt = 1;
export const sharedCovers = 2;
export const sharedLength = 3;

export function micros(ms: number): bigint {
  return BigInt(Math.round(ms * 1_000));
}

export function millis(us: bigint): number {
  return Number(us) / 1_000;
}
