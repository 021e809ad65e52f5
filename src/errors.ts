/** Every code an {@link EscapementError} can carry. A code never changes its meaning. */
export type ErrorCode =
  // What the caller gave is wrong.
  | "node-unsupported"
  | "invalid-option"
  | "invalid-duration"
  | "invalid-name"
  | "invalid-id"
  | "invalid-input"
  | "invalid-cron"
  | "invalid-zone"
  | "invalid-schedule"
  | "invalid-cursor"
  | "schedule-conflict"
  | "input-not-serialisable"
  | "input-too-large"
  | "unknown-job"
  | "unknown-parent"
  | "duplicate-definition"
  | "not-found"
  // The life of an app.
  | "already-started"
  | "stopped"
  | "result-timeout"
  | "result-not-kept"
  | "job-failed"
  | "invalid-middleware"
  // The guarantees.
  | "delivery-unsupported"
  | "weak-durability"
  | "transaction-unavailable"
  | "transaction-used"
  | "enqueue-unavailable"
  | "stale-claim"
  // The store.
  | "store-unavailable"
  | "store-busy"
  | "store-full"
  | "store-readonly"
  | "store-corrupt"
  | "unreadable-row"
  | "store-newer"
  | "store-unmigrated"
  | "store-missing-client"
  | "store-unsupported"
  // The transports and the consumers.
  | "transport-missing-client"
  | "metrics-missing-client"
  | "metrics-off"
  | "metrics-unavailable"
  | "publish-refused"
  | "publish-ambiguous"
  | "invalid-message"
  | "invalid-signature"
  | "source-unavailable";

/** The one error class of the library: a message for a person, a `code` for a program. */
export class EscapementError extends Error {
  override readonly name: string = "EscapementError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Thrown by a handler to say that trying again is pointless: the job is dead at once.
 *
 * @example
 * throw new UnrecoverableError("the customer was deleted");
 */
export class UnrecoverableError extends Error {
  override readonly name: string = "UnrecoverableError";
}

/**
 * Whether the same call may succeed later without any change.
 * Everything else is for a person to fix and is never retried automatically.
 */
export function isTransient(error: unknown): boolean {
  return (
    error instanceof EscapementError && (error.code === "store-unavailable" || error.code === "store-busy")
  );
}

/** Whether an error, or one that it names as its cause, is of a kind. Callers and their libraries wrap what a store throws. */
export function isCausedBy(error: unknown, isCause: (one: unknown) => boolean): boolean {
  let one = error;
  for (let depth = 0; depth < maxCauses; depth += 1) {
    if (isCause(one)) return true;
    if (!(one instanceof Error) || one.cause === undefined) return false;
    one = one.cause;
  }
  return false;
}

/** Causes can go in a circle. */
const maxCauses = 20;

/** What is kept of an error in the store. Stacks are cut, so a row stays small. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
}

const maxMessageLength = 2_000;
const maxStackLength = 8_000;

/** Turns whatever was thrown into what the store keeps; it accepts anything, since anything can be thrown, and never throws itself. */
export function recordError(thrown: unknown): ErrorRecord {
  try {
    return thrown instanceof Error ? recordOf(thrown) : { name: "Error", message: textOf(thrown) };
  } catch {
    return { name: "Error", message: "something was thrown that cannot be looked at" };
  }
}

function recordOf(error: Error): ErrorRecord {
  const { name, message, stack }: { name: unknown; message: unknown; stack?: unknown } = error;
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    name: typeof name === "string" ? name : "Error",
    message: textOf(message),
    ...(typeof stack === "string" ? { stack: stack.slice(0, maxStackLength) } : {}),
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code) } : {}),
  };
}

function textOf(value: unknown): string {
  return (typeof value === "string" ? value : describe(value)).slice(0, maxMessageLength);
}

/** A value as messages show it: short, quoted where it is a string, and never throwing. */
export function describe(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  if (typeof value === "function") return "a function";
  // As JSON it would be null.
  if (value instanceof Date && Number.isNaN(value.getTime())) return "an invalid Date";
  if (typeof value === "object" && value !== null) {
    try {
      const text = JSON.stringify(value);
      return text.length > 100 ? `${text.slice(0, 100)}…` : text;
    } catch {
      return "an object";
    }
  }
  return String(value);
}

/** @throws TypeError, or SyntaxError, where the store holds something else than {@link recordError} made. */
export function parseErrorRecord(text: string | null): ErrorRecord | null {
  const value: unknown = text === null ? null : JSON.parse(text);
  if (value === null || isErrorRecord(value)) return value;
  throw new TypeError("expected the record of an error");
}

/** The error that was recorded; one that cannot be read is shown as that. */
export function readErrorRecord(text: string | null): ErrorRecord | null {
  try {
    return parseErrorRecord(text);
  } catch {
    return { name: "Error", message: "the error that was recorded cannot be read" };
  }
}

function isErrorRecord(value: unknown): value is ErrorRecord {
  if (typeof value !== "object" || value === null || !("name" in value && "message" in value)) return false;
  return typeof value.name === "string" && typeof value.message === "string";
}

/** The name and the message of a recorded error, from the beginning of its record: {@link recordError} puts them first. Null for none. */
export function readErrorHead(head: string | null): Pick<ErrorRecord, "name" | "message"> | null {
  if (head === null) return null;
  const [, name, message] = errorHead.exec(head) ?? [];
  if (name === undefined || message === undefined) return readErrorRecord(head);
  return { name: unescaped(name), message: unescaped(message) };
}

/** The message may be cut short, but not in the middle of an escape. */
const errorHead = /^\{"name":"((?:[^"\\]|\\.)*)","message":"((?:[^"\\]|\\u[\da-f]{4}|\\[^u])*)/i;

function unescaped(text: string): string {
  const value: unknown = JSON.parse(`"${text}"`);
  return String(value);
}
