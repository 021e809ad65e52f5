import type { Notice } from "../../store/notices.ts";
import type { RunStatement, Value } from "./connection/link.ts";
import type { ClaimedSeqs } from "./jobs/claimed-seqs.ts";

/** What a verb works with. */
export interface Session {
  readonly run: RunStatement;
  /** The schema of the tables, quoted. */
  readonly schema: string;
  /** The schema of the functions that this version of the library calls, quoted. */
  readonly functions: string;
  /** The number of the namespace. */
  readonly ns: number;
  /** The time of a clock that was passed to the store; null means the server's. */
  readonly now: number | null;
  /** The numbers of the jobs that this handle has claimed. */
  readonly claimed: ClaimedSeqs;
  /** Publishes what a verb has changed, once it is committed. */
  readonly publish: (notices: readonly Notice[]) => void;
  /** Runs a statement and sends notices of what it changes: to others right behind its commit, to this process when it is answered. */
  readonly runAndTell: (
    sql: string,
    values: readonly Value[],
    notices: readonly Notice[],
  ) => Promise<unknown>;
}
