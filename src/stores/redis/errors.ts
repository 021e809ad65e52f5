import { type ErrorCode, EscapementError } from "../../errors.ts";

/** How the servers are reached; where another server takes over automatically, a read-only refusal is transient. */
export type Mode = "single" | "sentinel" | "cluster";

interface Meaning {
  readonly pattern: RegExp;
  readonly code: ErrorCode;
  readonly advice: string;
}

/** What Redis answers, by the word in its message. An error inside a script has it in the middle. */
const meanings: readonly Meaning[] = [
  {
    pattern: /\bOOM\b/,
    code: "store-full",
    advice: "its maxmemory is used up; raise it, or prune jobs sooner. Nothing of this call was written",
  },
  {
    pattern: /\bMISCONF\b/,
    code: "store-full",
    advice: "it cannot write to its disk; free some space there. Nothing of this call was written",
  },
  {
    pattern: /\bREADONLY\b/,
    code: "store-readonly",
    advice: "this is a replica; connect to the primary",
  },
  {
    pattern: /\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid (password|username-password)/i,
    code: "store-unsupported",
    advice:
      "check the user and the password, and that the user may run EVAL, EVALSHA and PUBLISH on these keys",
  },
  {
    pattern: /\b(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MOVED|ASK)\b/,
    code: "store-unavailable",
    advice: "it is not ready yet; this is temporary",
  },
];

/** An error as it leaves the store. Anything but Redis's own answer is a connection problem. */
export function translateError(error: unknown, where: string, mode: Mode): EscapementError {
  if (error instanceof EscapementError) return error;
  const cause = withoutCommand(error);
  const { message } = cause;
  const known = meanings.find(({ pattern }) => pattern.test(message));
  if (known === undefined && cause.name === "ReplyError") {
    return new EscapementError("store-corrupt", `Redis store ${where}: ${message}`, { cause });
  }
  const passes = known === undefined || (known.code === "store-readonly" && mode !== "single");
  const code = passes ? "store-unavailable" : known.code;
  const advice = known?.advice ?? "check that it runs and can be reached; this library keeps trying";
  return new EscapementError(code, `Redis store ${where}: ${message}; ${advice}`, { cause });
}

/** The client attaches the command to its errors, and with it a password or a job's input. */
function withoutCommand(error: unknown): Error {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const isBroken = name === "MaxRetriesPerRequestError";
  const plain = new Error(isBroken || message === "" ? "the connection broke" : message);
  plain.name = name;
  return plain;
}

export function timedOut(where: string, afterMs: number): EscapementError {
  return new EscapementError(
    "store-unavailable",
    `Redis store ${where}: no answer within ${afterMs} ms; check that it runs and can be reached, or raise callTimeout`,
  );
}
