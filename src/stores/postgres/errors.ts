import { type ErrorCode, EscapementError } from "../../errors.ts";

interface Meaning {
  readonly code: ErrorCode;
  readonly advice: string;
}

const unreachable: Meaning = {
  code: "store-unavailable",
  advice: "the call may or may not have been carried out; it is safe to repeat it",
};
const absent: Meaning = {
  code: "store-unavailable",
  advice: "is a server running there? Check the host and the port in its URL",
};
const encryption: Meaning = {
  code: "store-unsupported",
  advice: "check ssl and sslmode in its URL against what the server offers: sslmode=disable goes without",
};
const missing: Meaning = {
  code: "store-unavailable",
  advice: "its schema, or a part of it, is missing; call migrate() first, or check the option schema",
};
const denied: Meaning = {
  code: "store-unavailable",
  advice: "check the user, the password and the database in its URL",
};
const busy: Meaning = {
  code: "store-busy",
  advice: "another transaction is in the way; look for a long one on the tables of its schema",
};
const readonly: Meaning = {
  code: "store-readonly",
  advice: "connect to a server that takes writes, as a user with privileges on its schema",
};
const corrupt: Meaning = {
  code: "store-corrupt",
  advice: "check the server's log, and restore a backup",
};

/** What Postgres' error codes mean to a caller; a code of two characters covers its whole class. */
const meanings: Readonly<Record<string, Meaning>> = {
  "08": unreachable,
  "57P01": unreachable,
  "57P02": unreachable,
  "57P03": unreachable,
  "57P05": unreachable,
  "53300": {
    code: "store-unavailable",
    advice: "the server has no connection left; raise its max_connections",
  },
  "53": { code: "store-unavailable", advice: "the server has run out of memory or another resource" },
  "53100": { code: "store-full", advice: "free some space on its disk; nothing of this call was written" },
  "58030": { code: "store-unavailable", advice: "the server's disk refused a read or a write; check it" },
  "28": denied,
  "3D000": denied,
  "3F000": missing,
  "42P01": missing,
  "42883": missing,
  "40": busy,
  "55P03": busy,
  "57014": busy,
  "25006": readonly,
  "42501": readonly,
  XX001: corrupt,
  XX002: corrupt,
  ES001: { code: "transaction-unavailable", advice: "begin it with ISOLATION LEVEL READ COMMITTED" },
};

/** Errors of sockets, name resolution and poolers, which have no SQLSTATE. */
const unreachableText =
  /ECONN|EPIPE|ETIMEDOUT|terminated|timeout|closed the connection|Connection ended|not queryable|server_login_retry|query_wait_timeout|server conn crashed|client_login_timeout/i;

/** There never was a connection. */
const absentText = /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT/;
const encryptionText = /SSL|TLS|CERT|EPROTO/;

/** Postgres' code of the error; libraries on top of a client wrap its errors. A code has a digit: `EPIPE` is none. */
export function sqlState(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if ("code" in error && typeof error.code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(error.code))
    return error.code;
  return sqlState(error.cause);
}

/** Whether jobs cannot be enqueued in a caller's transaction, or in the database it is on. */
export function isUnsuitable(error: unknown): boolean {
  const code = sqlState(error);
  return code === "ES001" || (code !== null && meaningOf(code) === missing);
}

/**
 * Whether a statement run by a caller failed through no fault of its own: the connection broke, the server stopped, or it rolled
 * back in favour of another transaction. What the statement itself asked for (a lock without waiting, a time limit) is the caller's concern.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = sqlState(error);
  if (code === null) return meaningOfText(error)?.code === "store-unavailable";
  return meaningOf(code) === unreachable || isConflict(error);
}

/** The answers of a batch that `all_or_none` has undone, as JSON; null for any other error. */
export function refusedAnswers(error: unknown): string | null {
  if (!(error instanceof Error) || sqlState(error) !== "ES005") return null;
  return "detail" in error && typeof error.detail === "string" ? error.detail : null;
}

/** Whether a transaction conflicted with another one, so a retry is enough. */
export function isConflict(error: unknown): boolean {
  const code = sqlState(error);
  return code === "40P01" || code === "40001";
}

/** Whether the connection is unusable: it is broken, or leads to a server that takes no writes. */
export function spoilsConnection(error: unknown): boolean {
  const code = sqlState(error);
  if (code === null) return true;
  const meaning = meaningOf(code);
  return meaning === unreachable || code === "25006";
}

function meaningOf(code: string): Meaning | undefined {
  return meanings[code] ?? meanings[code.slice(0, 2)];
}

/** An error as it leaves the store. Errors of neither the server nor the connection pass unchanged. No message repeats a URL. */
export function translateError(error: unknown, place: string): unknown {
  if (!(error instanceof Error) || error instanceof EscapementError) return error;
  const code = sqlState(error);
  const meaning = code === null ? meaningOfText(error) : meaningOf(code);
  if (meaning === undefined) return error;
  return new EscapementError(
    meaning.code,
    `Postgres store ${place}: ${messageOf(error)}; ${meaning.advice}`,
    {
      cause: error,
    },
  );
}

function meaningOfText(error: Error): Meaning | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const text = `${code} ${messageOf(error)}`;
  if (absentText.test(text)) return absent;
  if (encryptionText.test(text)) return encryption;
  return unreachableText.test(text) || isAggregate(error) ? unreachable : undefined;
}

/** For a host with several addresses, the message is in the error of each address. */
function messageOf(error: Error): string {
  if (error.message !== "" || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((one) => (one instanceof Error ? one.message : String(one))).join(", ");
}

/** What Node throws for a host with several addresses when none of them answers. */
function isAggregate(error: Error): boolean {
  return error instanceof AggregateError && error.errors.some((one) => translateError(one, "") !== one);
}
