import { EscapementError } from "../errors.ts";

/** Refuses a Node that lacks what the library rests on, in words, before something of it fails in its own. package.json names the same versions. */
export function checkNode(found: string = process.versions.node): void {
  const [major = 0, minor = 0] = found.split(".").map(Number);
  // 23 ended before its node:sqlite had what 22.18 and 24 have.
  if (major >= 24 || (major === 22 && minor >= 18)) return;
  throw new EscapementError(
    "node-unsupported",
    `escapement needs Node 22.18 or newer (not 23), and this is ${found}; install a current Node`,
  );
}
