import type { InboxStore } from "../store/inbox.ts";
import type { Store } from "../store/store.ts";
import type { BrokerKind } from "./brokers/target.ts";
import type { CrashPoint } from "./crash-points.ts";

/** What a process of a run is told at its start. */
export interface MemberPlan {
  /** Another one for each process. */
  readonly name: string;
  /** The file for its own log. */
  readonly log: string;
  readonly namespace: string;
  readonly leaseMs: number;
  readonly retryMs: number;
  readonly concurrency: number;
}

/** Where a process of a run finds its plan. */
export const planVariable = "ESCAPEMENT_VERIFY_PLAN";

/** Reads the plan of this process, and leaves it to nobody else. */
export function takePlan<Plan extends MemberPlan>(): Plan {
  const text = process.env[planVariable] ?? "{}";
  delete process.env[planVariable];
  return JSON.parse(text);
}

/** A node: a process on the store. */
export interface NodePlan extends MemberPlan {
  readonly store: string;
  readonly pollMs: number;
  /** The SQLite file of the inbox, for stores without transactions. */
  readonly inbox: string | null;
  /** How far its clock is off; null leaves it the machine's own. */
  readonly clockOffsetMs: number | null;
  readonly tampering: TamperingPlan | null;
}

/** Where jobs are published. */
export interface RoutePlan {
  readonly kind: BrokerKind;
  readonly url: string;
  readonly topic: string;
  readonly dispatchTimeoutMs: number;
}

/** A node that publishes what is due. */
export interface RelayPlan extends NodePlan {
  readonly route: RoutePlan;
  readonly inFlight: number;
  readonly partitions: number;
  /** The seed of the drill that makes publishes fail; null: there is none. */
  readonly drill: number | null;
}

/** A process that handles what was published. */
export interface ConsumerPlan extends MemberPlan {
  readonly route: RoutePlan;
  /** The SQLite file of inbox and effects. */
  readonly inbox: string;
}

/** A fault of the product, put there on purpose: for the proof that the checker sees it. */
export interface TamperingPlan {
  /** A module that exports `tamper`. */
  readonly module: string;
  readonly bug: string;
}

export interface Tampering {
  readonly store?: (store: Store) => Store;
  readonly inbox?: (inbox: InboxStore) => InboxStore;
}

interface TamperingModule {
  tamper(bug: string): Tampering;
}

export async function tamperingOf(plan: TamperingPlan | null): Promise<Tampering> {
  if (plan === null) return {};
  const module: TamperingModule = await import(plan.module);
  return module.tamper(plan.bug);
}

/** What a node is told while it runs. */
export type NodeOrder =
  | { readonly kind: "block"; readonly ms: number }
  | { readonly kind: "clock"; readonly offsetMs: number }
  /** Dies the next time it comes to this point. */
  | { readonly kind: "crash"; readonly point: CrashPoint }
  | { readonly kind: "stop" };

/** What a node tells. */
export type NodeReport =
  | { readonly kind: "ready" }
  | { readonly kind: "blocked"; readonly fromMs: number; readonly untilMs: number };
