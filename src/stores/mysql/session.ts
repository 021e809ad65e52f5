import type { Claimers } from "./claimers.ts";
import type { Lines } from "./lines.ts";
import type { Answer, Link } from "./link.ts";
import type { NoticeDraft } from "./notices.ts";
import type { Queues } from "./queues.ts";
import type { Recall } from "./recall.ts";
import type { Sql } from "./sql.ts";

/** What a verb works with. */
export interface Session {
  readonly link: Link;
  /** The number of the namespace. */
  readonly ns: number;
  /** The store's time in milliseconds; known after the first answer. */
  readonly now: number;
  /** Whether other transactions may be left alone with the rows they hold (SKIP LOCKED), or must be waited for. */
  readonly skipLocked: boolean;
  /** The transaction is the caller's: it may see an old state of the database, and it may last. */
  readonly foreign: boolean;
  /** Reads what others have committed, as of now; of what this transaction itself wrote, it need not know. */
  peek(statement: Sql): Promise<Answer>;
  readonly lines: Lines;
  readonly claimers: Claimers;
  readonly queues: Queues;
  readonly recall: Recall;
  /** What to tell once the transaction has been committed. */
  readonly notices: NoticeDraft;
  /** Jobs that this call changed, by seq: what was read of them before holds no more. */
  readonly changed: Set<number>;
  /** Ends the transaction in the same trip as what was asked before. */
  commit(): void;
}
