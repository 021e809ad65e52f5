import type { InboxStore } from "../inbox-store.ts";
import type { Store } from "../store.ts";
import type { CrashPoint } from "./crash-points.ts";

/** What a node of a run is told at its start. */
export interface NodePlan {
  /** Another one for each process. */
  readonly name: string;
  readonly store: string;
  readonly namespace: string;
  /** The file for its own log. */
  readonly log: string;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly retryMs: number;
  /** The SQLite file of the inbox, for stores without transactions. */
  readonly inbox: string | null;
  /** How far its clock is off; null leaves it the machine's own. */
  readonly clockOffsetMs: number | null;
  readonly tampering: TamperingPlan | null;
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

export interface TamperingModule {
  tamper(bug: string): Tampering;
}

/** What a node is told while it runs. */
export type NodeOrder =
  | { readonly kind: "block"; readonly ms: number }
  | { readonly kind: "clock"; readonly offsetMs: number }
  /** Dies the next time it comes to this point. */
  | { readonly kind: "crash"; readonly point: CrashPoint }
  | { readonly kind: "stop" };

/** What a node tells. */
export type NodeNews =
  | { readonly kind: "ready" }
  | { readonly kind: "blocked"; readonly fromMs: number; readonly untilMs: number };
