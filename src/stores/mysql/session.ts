import type { NoticeDraft } from "../notice-draft.ts";
import type { Answer, Link } from "./connection/link.ts";
import type { Sql } from "./connection/sql.ts";
import type { Claimers } from "./jobs/claimers.ts";
import type { Remembered } from "./jobs/remembered.ts";
import type { Lines } from "./limits/lines.ts";
import type { Queues } from "./queues.ts";

/** What a verb works with. */
export interface Session {
  readonly link: Link;
  /** The number of the namespace. */
  readonly ns: number;
  /** The store's time in milliseconds; known after the first answer. */
  readonly now: number;
  /** Whether rows that other transactions hold may be skipped (SKIP LOCKED), or must be waited for. */
  readonly skipLocked: boolean;
  /** The transaction is the caller's: it may see an old snapshot of the database, and it may last. */
  readonly foreign: boolean;
  /** Reads what others have committed by now; it may miss what this transaction itself wrote. */
  peek(statement: Sql): Promise<Answer>;
  readonly lines: Lines;
  readonly claimers: Claimers;
  readonly queues: Queues;
  readonly remembered: Remembered;
  /** What to publish once the transaction has been committed. */
  readonly notices: NoticeDraft;
  /** Jobs that this call changed, by seq: what was read of them before is out of date. */
  readonly changed: Set<number>;
  /** Ends the transaction in the same trip as the queries before it. */
  commit(): void;
}
