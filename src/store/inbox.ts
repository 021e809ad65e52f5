/**
 * Where an inbox keeps its markers. A key's marker has three states: none, `running` with a lease, `done` with a
 * retention. Like the store of jobs, each verb is atomic, may be repeated after a lost reply, and uses its own clock.
 */
export interface InboxStore {
  /**
   * Whether `commit` makes the effect and the marker one transaction. If it does not, two copies can both take
   * effect when a holder dies, or sleeps past its lease, between the two.
   */
  readonly atomic: boolean;

  /** Creates its table, or whatever it needs. It may be called again, and by several processes at once. */
  migrate(): Promise<void>;

  /**
   * Asks for a key.
   * - `begun`: it is the caller's for `leaseMs`, under a higher token than its earlier holders had.
   * - `running`: another holder has it and its lease has not expired.
   * - `done`: it took effect.
   *
   * A key whose lease has expired starts again. The same `holder` asking again while it holds the key gets `begun`
   * with the same token.
   */
  begin(params: InboxBegin): Promise<InboxBegun>;
  /**
   * Runs the effect and marks the key done; a token that is no longer the key's makes it `stale`, and undoes the effect
   * where `atomic`.
   */
  commit<T>(params: InboxCommit<T>): Promise<InboxCommitted<T>>;
  /** Marks the key done if there is no effect to commit with it; false when it is no longer the holder's. */
  finish(params: InboxClaim & { readonly retentionMs: number }): Promise<boolean>;
  /** Keeps the key for longer; false when it is no longer the holder's. */
  extend(params: InboxClaim & { readonly leaseMs: number }): Promise<boolean>;
  /**
   * Nothing took effect: the next copy may start at once, and this holder commits nothing more; false when it was no
   * longer the holder's.
   */
  release(params: InboxClaim): Promise<boolean>;
  /** Forgets keys whose retention is over, and those that were begun, and never done, as long ago. Returns how many. */
  prune(params: InboxPrune): Promise<number>;

  /** Closes what it opened itself. */
  close(): Promise<void>;
}

export interface InboxClaim {
  readonly key: string;
  /** Rises with each holder of the key. */
  readonly token: number;
}

export interface InboxBegin {
  readonly key: string;
  /** Identifies a caller that repeats a begin whose reply was lost. */
  readonly holder: string;
  readonly leaseMs: number;
  /** How long after its lease a key that never became done is remembered. */
  readonly retentionMs: number;
}

export interface InboxPrune {
  readonly limit: number;
  readonly retentionMs: number;
}

export type InboxBegun =
  | { readonly outcome: "begun"; readonly token: number }
  /** Another copy has it, for at most this long. */
  | { readonly outcome: "running"; readonly retryInMs: number }
  | { readonly outcome: "done" };

export interface InboxCommit<T> extends InboxClaim {
  readonly retentionMs: number;
  /** The effect, given the store's own transaction handle, or undefined if there is none. */
  readonly run: (tx: unknown) => T | Promise<T>;
}

export type InboxCommitted<T> =
  | { readonly outcome: "committed"; readonly value: T }
  | { readonly outcome: "stale" };

/** A message, as far as the inbox cares: the key it travels under. */
export interface InboxMessage {
  /** The idempotency key: the same for every copy. */
  readonly key: string;
}

/**
 * `handled`: this copy took effect. `duplicate`: an earlier one had. `busy`: another one is being handled; deliver this one
 * again later.
 */
export type InboxOutcome<T> =
  | { readonly outcome: "handled"; readonly value: T }
  | { readonly outcome: "duplicate" }
  | { readonly outcome: "busy"; readonly retryInMs: number };

/** An inbox, as far as a worker needs one: for effectively-once jobs on a store without transactions. */
export interface EffectInbox {
  readonly atomic: boolean;
  /** How long a done key is remembered. */
  readonly retentionMs: number;
  handle<T, Db = unknown>(message: InboxMessage, effect: (db: Db) => T): Promise<InboxOutcome<Awaited<T>>>;
}
