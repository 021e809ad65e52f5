import type { Document } from "./document.ts";

/** What a verb works with: the document, which it may change, and the clocks. */
export interface Session {
  readonly document: Document;
  /** Wall time, for when jobs are due. */
  readonly now: number;
  /** For leases: a stepped wall clock must not end any. */
  readonly monotonic: number;
}
