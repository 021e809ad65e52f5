/** What people did, and why. */
export interface AuditVerbs {
  /** Adds a person's line to the trail of each job: a `log` line without a claimer. Unknown ids are skipped. */
  note(params: NoteParams): Promise<void>;

  /** Writes to the audit log. An entry whose id is known gets the new outcome and is not written again. */
  record(params: { readonly entries: readonly NewAuditEntry[] }): Promise<void>;

  /** The audit log, newest first. */
  audit(params: AuditParams): Promise<AuditPage>;
}

export interface NoteParams {
  readonly ids: readonly string[];
  readonly text: string;
}

/** What a person, or a program for one, is about to do or has done. */
export interface NewAuditEntry {
  /** Made by the caller, so a repeated write is the same entry. */
  readonly id: string;
  readonly actor: string;
  readonly action: string;
  /** What it was done to, such as `job:42` or `queue:mail`. */
  readonly target: string;
  readonly reason: string | null;
  /** JSON; null while it is unknown. */
  readonly outcome: string | null;
}

export interface AuditEntry extends NewAuditEntry {
  /** When it was first written, on the store's clock. */
  readonly at: Date;
}

export interface AuditFilter {
  readonly actors?: readonly string[];
  readonly actions?: readonly string[];
  readonly targets?: readonly string[];
  /** Inclusive. */
  readonly after?: Date;
  /** Exclusive. */
  readonly before?: Date;
}

export interface AuditParams {
  readonly filter: AuditFilter;
  readonly limit: number;
  /** From the previous answer; one that this question did not return is refused as `invalid-cursor`. */
  readonly cursor: string | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly cursor: string | null;
}
