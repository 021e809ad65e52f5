/** Wake-ups between processes. */
export interface NoticeVerbs {
  /**
   * Hints that something changed. They may be lost, late or repeated: listeners also poll. Returns how to unsubscribe.
   */
  subscribe(listener: (notice: Notice) => void): Promise<() => Promise<void>>;
}

/**
 * `jobs`: something became claimable in these queues (null: perhaps any). `cancel`: active jobs were asked to stop.
 * `ended`: jobs reached a terminal state. `schedules`: a schedule changed. `queues`: a queue's configuration changed.
 */
export type Notice =
  | { readonly kind: "jobs"; readonly queues: readonly string[] | null }
  | { readonly kind: "cancel"; readonly ids: readonly string[] }
  | { readonly kind: "ended"; readonly ids: readonly string[] | null }
  | { readonly kind: "schedules" }
  | { readonly kind: "queues" };
