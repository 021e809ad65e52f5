/** What a reaper knows of its way to the store, by the store's clock for leases. */
export interface Contact {
  /** When it began; it has not been interrupted since. */
  readonly since: number;
  /** When the store did what it was last asked. */
  readonly last: number;
}

/**
 * For how long, in a lease, a reaper must have been in touch with the store before it ends claims, and how long an interruption must be to
 * count as one. Holders try again within a second of a failure, and within a call's timeout of a silence. A shorter interruption lets no
 * lease run out: when it begins, at least two thirds are left of each.
 */
const graceLeases = 1 / 2;

/** How long a reaper waits by default. */
export function graceMs(leaseMs: number): number {
  return leaseMs * graceLeases;
}

/** The contact after an answer. An answer long after the one before it may be the end of an outage, in which no holder could renew. */
export function afterAnswer(contact: Contact | null, mark: number, leaseMs: number): Contact {
  // A clock that was set far back says nothing about the time between.
  if (contact === null || Math.abs(mark - contact.last) > graceMs(leaseMs))
    return { since: mark, last: mark };
  return { since: contact.since, last: mark };
}

/**
 * Up to when leases must have run out to be reaped: at the last time the store was known to answer, so a call that is in a stalled
 * store, and is done before those in which others renew, takes nothing from them. Null: none may be, their holders may be coming back.
 */
export function reapableUntil(contact: Contact | null, waitMs: number): number | null {
  if (contact === null || contact.last - contact.since < waitMs) return null;
  return contact.last;
}
