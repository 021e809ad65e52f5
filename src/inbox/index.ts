export type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxMessage,
  InboxOutcome,
  InboxStore,
} from "../inbox-store.ts";
export { createInbox, Inbox, type InboxOptions } from "./inbox.ts";
