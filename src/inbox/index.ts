export type {
  InboxBegin,
  InboxBegun,
  InboxClaim,
  InboxCommit,
  InboxCommitted,
  InboxStore,
} from "../inbox-store.ts";
export { createInbox, Inbox, type InboxMessage, type InboxOptions, type InboxOutcome } from "./inbox.ts";
