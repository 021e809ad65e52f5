import type { Notice } from "../../store.ts";
import type { ClaimedSeqs } from "./claimed-seqs.ts";
import type { Run } from "./link.ts";

/** What a verb works with. */
export interface Session {
  readonly run: Run;
  /** The schema, quoted. */
  readonly schema: string;
  /** The number of the namespace. */
  readonly ns: number;
  /** The time of a clock that was given to the store; null means the server's. */
  readonly now: number | null;
  /** The numbers of the jobs that this handle has claimed. */
  readonly claimed: ClaimedSeqs;
  /** Tells what a verb has changed, once it is committed. */
  readonly publish: (notices: readonly Notice[]) => void;
}
