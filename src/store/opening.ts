import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { Store } from "./store.ts";

/** What `sqlite(...)`, `memory()` and the others return: a store that is not open yet. */
export interface StoreFactory {
  open(context: StoreContext): Promise<Store>;
}

/** What a store is opened with. */
export interface StoreContext {
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Creates nothing: no file, no schema, no namespace. If they are missing, the store still opens, for
   * `pendingMigrations`; every other verb rejects with `store-unmigrated`. @default false
   */
  readonly mustExist?: boolean;
}

/** How to open the store again from another thread: a module that exports `openStore`, and the argument to give it. */
export interface StoreAddress {
  readonly module: string;
  /** Structured-cloneable. */
  readonly options: unknown;
}

/** What a store can do, as data. */
export interface Capabilities {
  /** Whether `transact` and `enqueue({ tx })` reach a database that the caller can write to. */
  readonly transactions: boolean;
  /** Whether notices arrive from other processes. */
  readonly listen: boolean;
  readonly timePrecisionMs: number;
  /** How much of an acknowledged write survives a power failure. */
  readonly durability: "full" | "weak" | "none";
  /**
   * Whether the order of claims, unique and debounce keys, limits of keys and queues, and `after` hold over the whole
   * namespace. False if it is spread over independent slots: order holds within each, and the rest is refused.
   */
  readonly acrossSlots: boolean;
}

export interface PendingMigration {
  /** The name of its file. */
  readonly name: string;
  /** Run it verbatim, ledger entry included. */
  readonly sql: string;
}

export interface Health {
  /** The store's clock. */
  readonly now: Date;
  /** The server or engine and its version, for a person. */
  readonly engine: string;
  readonly schemaVersion: number;
  /** Facts for `doctor`, each a line: setting and value. */
  readonly details: Readonly<Record<string, string>>;
  /** What is wrong with the store itself (a missing index, a setting that weakens a promise), each with what to do. */
  readonly problems: readonly string[];
}
