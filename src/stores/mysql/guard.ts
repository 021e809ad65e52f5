import { EscapementError } from "../../errors.ts";
import { sql } from "./sql.ts";

/**
 * Guards a transaction that a caller's function has in its hands. A deadlock undoes the whole of it, and a function that takes the error
 * for settled goes on: its next statements would each commit by itself. So nothing commits by itself, and a savepoint at the start tells
 * in the end whether the transaction is still the one that was begun.
 */
export const guard = {
  /** Before the transaction; {@link off} comes after it, whatever its end. */
  on: sql`set @escapement_autocommit = @@autocommit, autocommit = 0`,
  off: sql`set autocommit = @escapement_autocommit`,
  /** The first statement of the transaction. */
  mark: sql`savepoint escapement_guard`,
  /** The last of the caller's: it fails where the transaction has ended before. */
  check: sql`release savepoint escapement_guard`,
};

/** What a failure means to the caller if it was {@link guard}'s check. */
export function explainCheck(error: unknown): unknown {
  if (!(error instanceof Error && "code" in error && error.code === "ER_SP_DOES_NOT_EXIST")) return error;
  return new EscapementError(
    "transaction-used",
    "the transaction ended inside the function that was given it, by a commit, a rollback or a deadlock; leave the first two to the store, and let errors of the server through",
    { cause: error },
  );
}
