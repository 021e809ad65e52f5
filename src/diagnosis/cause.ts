import type { ErrorRecord } from "../errors.ts";
import type { Delivery, JobState } from "../job.ts";

/** A node that could serve a job and fell silent. */
export interface SilentNode {
  readonly id: string;
  readonly seenAt: Date;
}

/** What each reason says for a program. Instants are on the store's clock. */
export interface CauseFields {
  /** Its time has not come yet. */
  "due-later": { readonly runAt: Date; readonly inMs: number };
  /** An attempt failed; the next one comes after its backoff. */
  backoff: {
    readonly failures: number;
    readonly attempts: number;
    readonly error: ErrorRecord | null;
    readonly runAt: Date;
    readonly inMs: number;
  };
  /** Its handler asked to be called later. */
  snoozed: { readonly runAt: Date; readonly inMs: number };
  /** It was not started in time; a reaper cancels it. */
  expired: { readonly expireAt: Date };
  /** It is blocked by parents that have not succeeded. */
  parents: {
    /** Some of them. */
    readonly parents: readonly { readonly id: string; readonly state: JobState | null }[];
    readonly count: number;
  };
  "queue-paused": { readonly queue: string };
  /** No living worker has a handler for its name. */
  "no-handler": { readonly name: string; readonly alive: number; readonly silent: SilentNode | null };
  /** Living workers have a handler, but none of them works on its queue. */
  "queue-not-served": { readonly name: string; readonly queue: string; readonly nodes: readonly string[] };
  "queue-concurrency": { readonly queue: string; readonly limit: number; readonly active: number };
  "queue-rate": {
    readonly queue: string;
    readonly limit: number;
    readonly perMs: number;
    readonly until: Date;
    readonly inMs: number;
  };
  /** `key` is null if the definition limits all its jobs together; `limit` is null if this process does not know the definition. */
  "key-concurrency": {
    readonly name: string;
    readonly key: string | null;
    readonly limit: number | null;
    readonly active: number;
    /** Some of the active jobs. */
    readonly jobs: readonly string[];
  };
  /** As `key-concurrency`. */
  "key-rate": {
    readonly name: string;
    readonly key: string | null;
    readonly limit: number | null;
    readonly perMs: number;
    readonly used: number;
    readonly until: Date;
    readonly inMs: number;
  };
  /** One more crash makes it dead, so it waits for a worker that runs nothing else. */
  "runs-alone": { readonly crashes: number; readonly maxCrashes: number };
  "all-slots-busy": { readonly nodes: number; readonly slots: number };
  /** No living relay has its route. */
  "no-relay": { readonly name: string; readonly relays: number; readonly silent: SilentNode | null };
  /** `partition` is null before any relay has divided the namespace. */
  "partition-without-owner": { readonly partition: number | null };
  "owner-without-route": { readonly name: string; readonly partition: number; readonly owner: string };
  /** Its destination refused it; it is published again later. */
  "destination-refuses": {
    readonly rollbacks: number;
    readonly error: ErrorRecord | null;
    readonly runAt: Date;
    readonly inMs: number;
  };
  /** Nothing holds it back. */
  "next-in-line": { readonly relayed: boolean };
  /** It is active, and its node is alive. */
  running: { readonly claimer: string; readonly since: Date; readonly forMs: number };
  publishing: { readonly claimer: string; readonly since: Date; readonly forMs: number };
  "cancel-requested": { readonly claimer: string };
  /** It is active, and its node fell silent or left. */
  "claimer-silent": {
    readonly claimer: string;
    readonly seenAt: Date | null;
    readonly delivery: Delivery;
    readonly reapers: number;
  };
  /** It was being published by a relay that lost the partition. */
  "owner-changed": { readonly claimer: string; readonly delivery: Delivery };
}

export type CauseCode = keyof CauseFields;

/** Why a job has not ended: a code for a program, with its own fields. */
export type Cause = { readonly [C in CauseCode]: { readonly code: C } & CauseFields[C] }[CauseCode];
