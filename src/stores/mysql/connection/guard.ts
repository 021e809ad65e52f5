import { EscapementError } from "../../../errors.ts";
import { sql } from "./sql.ts";

/**
 * Guards a transaction while a caller's function uses it. A deadlock rolls all of it back, and a function that swallows the error
 * continues: each of its next statements would commit on its own. So autocommit is off, and a savepoint at the start shows
 * at the end whether the transaction is still the original one.
 */
export const guard = {
  /** Before the transaction; {@link off} follows it, however it ends. */
  on: sql`set @escapement_autocommit = @@autocommit, autocommit = 0`,
  off: sql`set autocommit = @escapement_autocommit`,
  /** The first statement of the transaction. */
  mark: sql`savepoint escapement_guard`,
  /** The last statement after the caller's: it fails if the transaction has already ended. */
  check: sql`release savepoint escapement_guard`,
};

/** What a failure of {@link guard}'s check means to the caller. */
export function explainCheck(error: unknown): unknown {
  if (!(error instanceof Error && "code" in error && error.code === "ER_SP_DOES_NOT_EXIST")) return error;
  return new EscapementError(
    "transaction-used",
    "the transaction ended inside the function that received it, through a commit, a rollback or a deadlock; leave commit and rollback to the store, and rethrow server errors",
    { cause: error },
  );
}
