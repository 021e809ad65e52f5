import { type ErrorCode, EscapementError, recordError } from "../errors.ts";

/** Every code that a problem can carry: those of errors, and what only a server says. */
export type ProblemCode =
  | ErrorCode
  | "invalid-request"
  | "unauthorised"
  | "forbidden"
  | "cross-site"
  | "too-many-attempts"
  | "too-many-tasks"
  | "too-many-streams"
  | "unknown-route"
  | "method-not-allowed"
  | "body-too-large"
  | "not-json"
  | "idempotency-mismatch"
  | "internal";

/** The status of each code. */
const statusOf: Readonly<Record<ProblemCode, number>> = {
  "invalid-request": 400,
  "not-json": 415,
  unauthorised: 401,
  forbidden: 403,
  "cross-site": 403,
  "unknown-route": 404,
  "method-not-allowed": 405,
  "body-too-large": 413,
  "too-many-attempts": 429,
  "too-many-tasks": 429,
  "too-many-streams": 429,
  "idempotency-mismatch": 422,
  internal: 500,

  "invalid-option": 400,
  "invalid-duration": 400,
  "invalid-name": 400,
  "invalid-id": 400,
  "invalid-cron": 400,
  "invalid-zone": 400,
  "invalid-schedule": 400,
  "invalid-cursor": 400,
  "input-not-serialisable": 400,
  "input-too-large": 413,
  "invalid-input": 422,
  "unknown-job": 422,
  "unknown-parent": 422,
  "delivery-unsupported": 422,
  "weak-durability": 422,
  "not-found": 404,
  "schedule-conflict": 409,
  "duplicate-definition": 409,
  "already-started": 409,
  "transaction-used": 409,
  "stale-claim": 409,
  "job-failed": 409,
  "result-not-kept": 410,
  "result-timeout": 504,

  // A store that does not answer, or cannot write, is not the caller's mistake and may recover.
  "store-unavailable": 503,
  "store-busy": 503,
  "store-full": 503,
  "store-readonly": 503,
  "store-corrupt": 503,
  "store-newer": 503,
  "store-unmigrated": 503,
  "enqueue-unavailable": 503,
  "metrics-unavailable": 503,
  "source-unavailable": 503,
  stopped: 503,

  // What no request can cause.
  "node-unsupported": 500,
  "invalid-middleware": 500,
  "unreadable-row": 500,
  "store-missing-client": 500,
  "store-unsupported": 500,
  "transport-missing-client": 500,
  "transaction-unavailable": 500,
  "metrics-missing-client": 500,
  "metrics-off": 500,
  "publish-refused": 500,
  "publish-ambiguous": 500,
  "invalid-message": 500,
  "invalid-signature": 500,
};

/** An error as it travels (RFC 9457). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
}

/** What a request gets instead of an answer. */
export class ProblemError extends Error {
  override readonly name: string = "ProblemError";
  readonly code: ProblemCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

/** An error as the client sees it. The message of a foreign error may hold anything, so it stays here. */
export function problemOf(error: unknown): Problem {
  const isKnown = error instanceof ProblemError || error instanceof EscapementError;
  const code = isKnown ? error.code : "internal";
  const detail = isKnown
    ? recordError(error).message
    : "something went wrong that this server did not expect; its log has more";
  return { type: `urn:escapement:${code}`, title: titleOf(code), status: statusOf[code], detail, code };
}

function titleOf(code: ProblemCode): string {
  return `${code.charAt(0).toUpperCase()}${code.slice(1).replaceAll("-", " ")}`;
}
