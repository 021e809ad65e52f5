import type { Store } from "../store/store.ts";

/**
 * Cancels jobs that the next occurrence of their schedule replaces. It goes before the occurrence is fired: killed in between, the occurrence is
 * still due, and the next round finds nothing left to replace.
 */
export async function cancelReplaced(store: Pick<Store, "cancel">, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await store.cancel({ select: { ids }, reason: "replaced by the next occurrence of its schedule" });
}
