import { describe, EscapementError } from "../../errors.ts";

/** Messages go to one subject, so it has no wildcards. */
export function checkSubject(value: unknown, option: string): string {
  if (!isSubject(value) || /[*>]/.test(value)) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a subject such as "payments.due", without wildcards and spaces, got ${describe(value)}`,
    );
  }
  return value;
}

/** A subject to read may cover many: `*` for one word, `>` at the end for all that follow. */
export function checkFilter(value: unknown, option: string): string {
  const words = isSubject(value) ? value.split(".") : [];
  const isWord = (word: string, index: number): boolean =>
    word === "*" || (word === ">" && index === words.length - 1) || !/[*>]/.test(word);
  if (!isSubject(value) || !words.every(isWord)) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be a subject such as "payments.due", "payments.*" or "payments.>", got ${describe(value)}`,
    );
  }
  return value;
}

/** Whether a filter covers a message's subject. */
export function isCovered(subject: string, filter: string): boolean {
  const words = subject.split(".");
  const wanted = filter.split(".");
  const isOpen = wanted.at(-1) === ">";
  if (isOpen ? words.length < wanted.length : words.length !== wanted.length) return false;
  return wanted.every((want, index) => want === ">" || want === "*" || want === words[index]);
}

function isSubject(value: unknown): value is string {
  return typeof value === "string" && value.length <= 255 && /^[^\s\p{Cc}.]+(\.[^\s\p{Cc}.]+)*$/u.test(value);
}
