/** The command line itself is wrong: the exit code is 2, as for what Commander refuses. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
