import type { StandardSchemaV1 } from "@standard-schema/spec";
import { EscapementError } from "./errors.ts";

/**
 * Runs a Standard Schema over a value.
 *
 * @param given what the value was before it went through JSON, for the message.
 * @returns what the schema made of it; a promise only if the schema itself is asynchronous, so the usual case stays
 * in the same turn and shares its trip to the store.
 * @throws EscapementError `invalid-input`, with the path and message of each issue.
 */
export function validate<S extends StandardSchemaV1>(
  schema: S,
  value: unknown,
  what: string,
  given: unknown = value,
): StandardSchemaV1.InferOutput<S> | Promise<StandardSchemaV1.InferOutput<S>> {
  const answer = schema["~standard"].validate(value);
  return answer instanceof Promise
    ? answer.then((late) => unwrap(late, what, given))
    : unwrap(answer, what, given);
}

function unwrap<T>(answer: StandardSchemaV1.Result<T>, what: string, given: unknown): T {
  if (answer.issues === undefined) return answer.value;
  const issues = answer.issues.slice(0, 5).map((issue) => {
    const keys = (issue.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
    const path = keys.map(String).join(".");
    const message = `${issue.message}${valueAt(given, keys) instanceof Date ? ` (${dateIsText})` : ""}`;
    return path === "" ? message : `${path}: ${message}`;
  });
  throw new EscapementError(
    "invalid-input",
    `the input of ${what} does not fit its schema: ${issues.join("; ")}`,
  );
}

const dateIsText =
  "inputs travel as JSON, where a Date is a string: use a schema that takes one, such as z.coerce.date()";

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inside, key) => Object(inside)[key], value);
}
