import { describe, type ErrorCode, EscapementError } from "./errors.ts";

const maxNameLength = 128;
const maxIdLength = 255;
const maxKeyLength = 512;

/** Names of jobs, queues, namespaces, schedules and tags. Control characters are refused: they would break keys and lines apart. */
export function checkName(value: unknown, what: string): string {
  return checkText(value, what, maxNameLength, "invalid-name");
}

export function checkId(value: unknown, what = "id"): string {
  return checkText(value, what, maxIdLength, "invalid-id");
}

/** What a key function returned: keys are bounded like everything else that is indexed. */
export function checkKey(value: unknown, what: string): string {
  return checkText(value, what, maxKeyLength, "invalid-name");
}

/** Whether {@link checkKey} takes it. */
export function isKey(value: string): boolean {
  return isText(value, maxKeyLength);
}

function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= maxLength &&
    value.isWellFormed() &&
    !/\p{Cc}/u.test(value)
  );
}

function checkText(value: unknown, what: string, maxLength: number, code: ErrorCode): string {
  if (!isText(value, maxLength)) {
    throw new EscapementError(
      code,
      `expected ${what} to be a string of 1 to ${maxLength} characters without control characters or lone surrogates, got ${describe(value)}`,
    );
  }
  return value;
}
