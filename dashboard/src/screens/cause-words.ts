import type { JobStory } from "../api/answers.ts";
import { count, jobs, sentence, span } from "../format.ts";

type Cause = NonNullable<JobStory["diagnosis"]>["causes"][number];
type Fields = Readonly<Record<string, unknown>>;

function number(fields: Fields, name: string): number {
  return Number(fields[name] ?? 0);
}

/** `in 0.5 s`, `at once`. */
function soon(ms: number): string {
  return ms < 100 ? "at once" : `in ${ms < 1_000 ? `${Math.round(ms / 100) / 10} s` : span(ms)}`;
}

/** Short enough for a row, and as the page writes times; the job's own page says the rest. */
const words: Readonly<Record<string, (fields: Fields) => string>> = {
  "queue-paused": () => "Paused: no job starts.",
  "queue-concurrency": (fields) => `All ${count(number(fields, "limit"))} at once are running.`,
  "queue-rate": (fields) => `At its rate; the next starts ${soon(number(fields, "inMs"))}.`,
  "key-concurrency": ({ name, key, ...fields }) =>
    `${key === null ? `The limit of ${String(name)}` : `The key ${String(key)} of ${String(name)}`} is full: ${jobs(number(fields, "active"))} running.`,
  "key-rate": ({ name, key, ...fields }) =>
    `${key === null ? String(name) : `The key ${String(key)} of ${String(name)}`} is at its rate; the next starts ${soon(number(fields, "inMs"))}.`,
  "no-handler": ({ name }) => `No living node handles ${String(name)}.`,
  "all-slots-busy": (fields) => `All ${count(number(fields, "slots"))} slots of its nodes are busy.`,
  "next-in-line": () => "Nothing: it is about to start.",
  running: () => "Nothing: it has just started.",
};

export function causeText(cause: Cause): string {
  return words[cause.code]?.(cause) ?? sentence(cause.what);
}
