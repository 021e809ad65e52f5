export type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxMessage,
  InboxOutcome,
  InboxStore,
} from "../store/inbox.ts";
export type { InboxHold } from "./hold.ts";
export { createInbox, Inbox, type InboxHeld, type InboxOptions } from "./inbox.ts";
