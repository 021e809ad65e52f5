import type { NoticeDraft } from "../notice-draft.ts";
import type { Connection } from "./connection/connection.ts";

/** What a verb works with, inside an open transaction. */
export interface Session {
  readonly connection: Connection;
  /** The number of the namespace. */
  readonly ns: number;
  /** Wall time in milliseconds. */
  readonly now: number;
  /** The machine's monotonic clock in milliseconds, for leases. */
  readonly monotonic: number;
  /** The number of this boot of the machine. */
  readonly boot: number;
  /** The sequences of claims through this handle that took nothing, by claimer. */
  readonly emptyClaims: Map<string, number>;
  /** What to publish once the transaction has been committed. */
  readonly notices: NoticeDraft;
}
