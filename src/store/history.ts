import type { History, HistoryParams, RecordHistoryParams } from "../history.ts";

/** Figures of what has ended. */
export interface HistoryVerbs {
  /**
   * Adds figures to their minutes and hours: counts and sums are added up, of a maximum the highest is kept. A sequence that is
   * not higher than the last one of this node adds nothing, so a call whose reply was lost may be repeated.
   */
  recordHistory(params: RecordHistoryParams): Promise<void>;

  /** What has ended, by minute or by hour. */
  history(params: HistoryParams): Promise<History>;
}
