import { type ErrorCode, EscapementError } from "../../errors.ts";

interface Meaning {
  readonly code: ErrorCode;
  readonly advice: string;
}

const unreachable = "check that the server runs and can be reached; the call may be repeated";
const full = "free some space on the server's disk; nothing of this call was written";
const readonly = "write to the primary server, and check that it is not read-only";
const rights = "give its user SELECT, INSERT, UPDATE and DELETE, and for migrations CREATE, ALTER and INDEX";
const busy = "look for long transactions on its tables (SHOW ENGINE INNODB STATUS)";

/** Errors of the server and of the client that mean something to a caller, by the name that mysql2 gives them. */
const meanings: Readonly<Record<string, Meaning>> = {
  ER_LOCK_DEADLOCK: { code: "store-busy", advice: busy },
  ER_LOCK_WAIT_TIMEOUT: { code: "store-busy", advice: busy },
  ER_CHECKREAD: { code: "store-busy", advice: busy },
  ER_RECORD_FILE_FULL: { code: "store-full", advice: full },
  ER_DISK_FULL: { code: "store-full", advice: full },
  ER_DISK_FULL_NOWAIT: { code: "store-full", advice: full },
  ER_ENGINE_OUT_OF_MEMORY: { code: "store-unavailable", advice: unreachable },
  ER_OPTION_PREVENTS_STATEMENT: { code: "store-readonly", advice: readonly },
  ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: { code: "store-readonly", advice: readonly },
  ER_READ_ONLY_MODE: { code: "store-readonly", advice: readonly },
  ER_INNODB_READ_ONLY: { code: "store-readonly", advice: readonly },
  ER_TABLEACCESS_DENIED_ERROR: { code: "store-readonly", advice: rights },
  ER_DBACCESS_DENIED_ERROR: { code: "store-unavailable", advice: rights },
  ER_ACCESS_DENIED_ERROR: { code: "store-unavailable", advice: "check the user and the password" },
  ER_BAD_DB_ERROR: { code: "store-unavailable", advice: "create the database, or name another one" },
  ER_NO_SUCH_TABLE: {
    code: "store-unmigrated",
    advice: 'run "escapement migrate", or leave the migrate option on',
  },
  ER_CON_COUNT_ERROR: {
    code: "store-unavailable",
    advice: "raise max_connections, or use fewer connections",
  },
  ER_TOO_MANY_USER_CONNECTIONS: {
    code: "store-unavailable",
    advice: "raise the user's connection limit",
  },
  HANDSHAKE_NO_SSL_SUPPORT: {
    code: "store-unsupported",
    advice: "check ssl in its URL against what the server offers: ssl=false goes without",
  },
  ER_NET_PACKET_TOO_LARGE: { code: "input-too-large", advice: "raise the server's max_allowed_packet" },
  ER_DATA_TOO_LONG: { code: "input-too-large", advice: "an id, a name or a key is longer than its column" },
};

/** Codes that mean that the connection is gone, or was never made: it is unknown whether the server did the work. */
const lost = new Set([
  "PROTOCOL_CONNECTION_LOST",
  "PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR",
  "PROTOCOL_ENQUEUE_AFTER_QUIT",
  "PROTOCOL_SEQUENCE_TIMEOUT",
  "ER_SERVER_SHUTDOWN",
  "ER_NORMAL_SHUTDOWN",
  "ER_CONNECTION_KILLED",
  "ER_QUERY_INTERRUPTED",
  "ER_CLIENT_INTERACTION_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EADDRNOTAVAIL",
]);

/** MariaDB 11 and MySQL 8 have error numbers that the client may not know by name. */
const namesByNumber: Readonly<Record<number, string>> = {
  1020: "ER_CHECKREAD",
  1927: "ER_CONNECTION_KILLED",
  3024: "ER_QUERY_INTERRUPTED",
  4031: "ER_CLIENT_INTERACTION_TIMEOUT",
};

function nameOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if ("errno" in error && typeof error.errno === "number") {
    const known = namesByNumber[error.errno];
    if (known !== undefined) return known;
  }
  return "code" in error && typeof error.code === "string" ? error.code : null;
}

/** Whether the call conflicted with others, so a retry is enough. */
export function isConflict(error: unknown): boolean {
  return isDeadlock(error) || nameOf(error) === "ER_LOCK_WAIT_TIMEOUT";
}

/** The same, but fit for an immediate retry: a lock timeout has already waited long enough. */
export function isDeadlock(error: unknown): boolean {
  const name = nameOf(error);
  return name === "ER_LOCK_DEADLOCK" || name === "ER_CHECKREAD";
}

export function isDuplicate(error: unknown): boolean {
  return nameOf(error) === "ER_DUP_ENTRY";
}

export function isMissingTable(error: unknown): boolean {
  const name = nameOf(error);
  return name === "ER_NO_SUCH_TABLE" || name === "ER_UNKNOWN_TABLE";
}

/** Whether the connection is unusable. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof EscapementError) return error.code === "store-unavailable";
  return lost.has(nameOf(error) ?? "") || ("fatal" in error && error.fatal === true);
}

/**
 * Whether a statement run by a caller failed through no fault of its own: the connection broke, the server stopped, it rolled back in favour
 * of another transaction, or a lock was not free within the time that the store itself sets.
 */
export function isPassing(error: unknown): boolean {
  return isConflict(error) || (isLost(error) && nameOf(error) !== "ER_QUERY_INTERRUPTED");
}

/** An error as it leaves the store; errors of neither the server nor the client pass unchanged. */
export function translateError(error: unknown, where: string): unknown {
  if (!(error instanceof Error) || error instanceof EscapementError) return error;
  const name = nameOf(error);
  const known = meanings[name ?? ""];
  if (known !== undefined) return translated(error, where, known);
  if (isLost(error)) return translated(error, where, { code: "store-unavailable", advice: unreachable });
  return error;
}

function translated(error: Error, where: string, { code, advice }: Meaning): EscapementError {
  return new EscapementError(code, `MySQL store ${where}: ${error.message || error.name}; ${advice}`, {
    cause: error,
  });
}
