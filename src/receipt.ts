/** What became of an enqueue. */
export interface EnqueueReceipt {
  /** The job that stands for what was asked: another one's when it was absorbed or debounced. */
  readonly id: string;
  readonly outcome: "added" | "existing" | "absorbed" | "debounced";
}
