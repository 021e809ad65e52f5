import { EscapementError } from "./errors.ts";

/** The oldest Node that the library runs on; package.json says the same. */
const oldest = "22.18";

/** Refuses a Node that lacks what the library rests on, in words, before something of it fails in its own. */
export function checkNode(found: string = process.versions.node): void {
  const [major = 0, minor = 0] = found.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split(".").map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new EscapementError(
    "node-unsupported",
    `escapement needs Node ${oldest} or newer, and this is ${found}; install a current Node`,
  );
}
