import type { Client } from "../client/client.ts";
import { isSought } from "../client/filter.ts";
import { describe, EscapementError } from "../errors.ts";
import { checkDate, checkInteger, checkKnown } from "../options.ts";
import type { AuditEntry, AuditFilter } from "../store/audit.ts";

export type AuditLogFilter = AuditFilter;

/** What a person or program did. */
export interface AuditLogEntry extends Omit<AuditEntry, "outcome"> {
  /** The outcome; null while it is unknown: it is in progress, or its process was killed. */
  readonly outcome: unknown;
}

export interface AuditLogPage {
  readonly entries: readonly AuditLogEntry[];
  readonly cursor: string | null;
}

export async function readAudit(
  client: Client,
  filter: AuditLogFilter,
  options: { readonly limit?: number; readonly cursor?: string | null },
): Promise<AuditLogPage> {
  checkKnown(filter, ["actors", "actions", "targets", "after", "before"], "a filter of the audit log");
  checkKnown(options, ["limit", "cursor"], "audit");
  for (const key of ["actors", "actions", "targets"] as const) {
    const values: unknown = filter[key];
    if (values === undefined || (Array.isArray(values) && values.every(isSought))) continue;
    throw new EscapementError(
      "invalid-option",
      `expected ${key} of a filter to be a list of strings without NUL or lone surrogates, got ${describe(values)}`,
    );
  }
  if (filter.after !== undefined) checkDate(filter.after, "after of a filter");
  if (filter.before !== undefined) checkDate(filter.before, "before of a filter");
  const limit = checkInteger(options.limit ?? 50, 1, 10_000, "limit");
  const { entries, cursor } = await client.audit({ filter, limit, cursor: options.cursor ?? null });
  return { entries: entries.map((entry) => ({ ...entry, outcome: readOutcome(entry.outcome) })), cursor };
}

/** What something else has written there is shown as it is. */
function readOutcome(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return text;
  }
}
