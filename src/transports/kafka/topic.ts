import { describe, EscapementError } from "../../errors.ts";

export function checkTopic(value: unknown, option: string): string {
  if (typeof value !== "string" || !/^(?!\.{1,2}$)[\w.-]{1,249}$/.test(value)) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be 1 to 249 letters, digits, dots, dashes and underscores, and not . or .., got ${describe(value)}`,
    );
  }
  return value;
}
