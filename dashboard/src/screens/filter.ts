import type { JobState } from "../api/answers.ts";
import { dayAndTime } from "../format.ts";

/** What the address bar says is the filter. */
export type Filter = Readonly<Record<string, string>>;

export const filterWords = [
  "state",
  "name",
  "queue",
  "tag",
  "delivery",
  "schedule",
  "since",
  "until",
  "error",
  "text",
  "fingerprint",
] as const;

export function readFilter(query: URLSearchParams): Filter {
  return Object.fromEntries(
    filterWords.flatMap((word) => (query.get(word) ? [[word, query.get(word) ?? ""]] : [])),
  );
}

const lists = ["state", "name", "queue", "tag", "delivery"];

/** In a body, words that may stand several times are lists. */
export function bodyOf(filter: Filter): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(filter).map(([word, value]) => [word, lists.includes(word) ? [value] : value]),
  );
}

export const endedStates: readonly JobState[] = ["succeeded", "dead", "lost", "cancelled"];

/** Whether a word of the filter is a moment, and not how long ago. */
export function isMoment(value: string | undefined): value is string {
  return value !== undefined && /^\d{4}-/.test(value) && !Number.isNaN(Date.parse(value));
}

/** What is filtered by, as people read it: a moment by their clock. */
export function wordValue(value: string): string {
  return isMoment(value) ? dayAndTime(value) : value;
}

/** What a word of the filter is called where people read it. */
export function wordName(word: string): string {
  return word === "fingerprint" ? "failure group" : word;
}
