/** The command line itself is wrong: it ends with 2, as what Commander refuses. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
