/** Every code an {@link EscapementError} can carry. A code never changes its meaning. */
export type ErrorCode =
  // What the caller gave is wrong.
  | "invalid-option"
  | "invalid-duration"
  | "invalid-name"
  | "invalid-id"
  | "invalid-input"
  | "invalid-cron"
  | "invalid-zone"
  | "invalid-schedule"
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
  | "job-failed"
  // The guarantees.
  | "delivery-unsupported"
  | "weak-durability"
  | "transaction-unavailable"
  | "transaction-used"
  | "stale-claim"
  // The store.
  | "store-unavailable"
  | "store-busy"
  | "store-full"
  | "store-readonly"
  | "store-corrupt"
  | "store-newer"
  | "store-unmigrated"
  | "store-missing-client"
  | "store-unsupported";

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
 * Whether the same call may succeed later without anybody changing anything.
 * Everything else is for a person to mend and is never retried by itself.
 */
export function isTransient(error: unknown): boolean {
  return (
    error instanceof EscapementError && (error.code === "store-unavailable" || error.code === "store-busy")
  );
}

/** What is kept of an error in the store. Stacks are cut, so that a row stays small. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
}

const maxMessageLength = 2_000;
const maxStackLength = 8_000;

/** Turns whatever was thrown into what the store keeps; it accepts anything, since anything can be thrown. */
export function recordError(thrown: unknown): ErrorRecord {
  if (!(thrown instanceof Error)) {
    return { name: "Error", message: describe(thrown).slice(0, maxMessageLength) };
  }
  const code: unknown = "code" in thrown ? thrown.code : undefined;
  return {
    name: thrown.name,
    message: thrown.message.slice(0, maxMessageLength),
    ...(thrown.stack === undefined ? {} : { stack: thrown.stack.slice(0, maxStackLength) }),
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code) } : {}),
  };
}

/** A value as it stands in a message: short, quoted where it is a string, and never throwing. */
export function describe(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  if (typeof value === "function") return "a function";
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
