import type { NoticeDraft } from "../../notice-draft.ts";
import { isRecord, textsOf } from "../rows.ts";

/** Adds what a server function reported: {queues, anywhere, ended, cancels}, or null. */
export function addReported(draft: NoticeDraft, told: unknown): void {
  if (!isRecord(told)) return;
  for (const queue of textsOf(told["queues"])) draft.claimable(queue);
  if (told["anywhere"] === true) draft.claimableAnywhere();
  for (const id of textsOf(told["ended"])) draft.ended(id);
  for (const id of textsOf(told["cancels"])) draft.cancelRequested(id);
}
