import type { ZodError } from "zod";

type Issue = ZodError["issues"][number];

/** What is wrong with one field of a request, in the form of all our messages. */
export function describeIssue(issue: Issue): string {
  const field = fieldOf(issue.path);
  const what = expectationOf(issue);
  if (what !== null) return `expected ${field === "" ? "it" : field} ${what}`;
  return field === "" ? issue.message : `${field}: ${issue.message}`;
}

/** `state[0]`, `filter.name`. */
function fieldOf(path: Issue["path"]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return text === "" ? String(key) : `${text}.${String(key)}`;
  }, "");
}

const units: Readonly<Record<string, string>> = { string: "characters", array: "entries", set: "entries" };

function sizeOf(origin: string, bound: string): string {
  const unit = units[origin];
  return unit === undefined ? `to be ${bound}` : `to have ${bound} ${unit}`;
}

/** Null if the message says it already, as those of our own checks do. */
function expectationOf(issue: Issue): string | null {
  switch (issue.code) {
    case "invalid_value":
      return `to be ${issue.values.length === 1 ? "" : "one of "}${issue.values.map(String).join(", ")}`;
    case "invalid_type":
      return issue.message.endsWith("received undefined") ? "to be given" : `to be of type ${issue.expected}`;
    case "too_small":
      return sizeOf(issue.origin, `at least ${issue.minimum}`);
    case "too_big":
      return sizeOf(issue.origin, `at most ${issue.maximum}`);
    case "unrecognized_keys":
      return `to have no ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}; it is not known here`;
    case "invalid_format":
      return issue.format === "datetime" ? "to be a time such as 2026-11-15T03:00:00Z" : null;
    default:
      return null;
  }
}
