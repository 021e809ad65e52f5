import type { StandardSchemaV1 } from "@standard-schema/spec";
import { EscapementError } from "./errors.ts";

/**
 * Runs a Standard Schema over a value.
 *
 * @returns what the schema made of it; a promise only where the schema itself is asynchronous, so the usual case stays
 * in the same turn and shares its trip to the store.
 * @throws EscapementError `invalid-input`, with the path and message of each issue.
 */
export function validate<S extends StandardSchemaV1>(
  schema: S,
  value: unknown,
  what: string,
): StandardSchemaV1.InferOutput<S> | Promise<StandardSchemaV1.InferOutput<S>> {
  const answer = schema["~standard"].validate(value);
  return answer instanceof Promise ? answer.then((late) => unwrap(late, what)) : unwrap(answer, what);
}

function unwrap<T>(answer: StandardSchemaV1.Result<T>, what: string): T {
  if (answer.issues === undefined) return answer.value;
  const issues = answer.issues.slice(0, 5).map((issue) => {
    const path = (issue.path ?? [])
      .map((part) => String(typeof part === "object" ? part.key : part))
      .join(".");
    return path === "" ? issue.message : `${path}: ${issue.message}`;
  });
  throw new EscapementError(
    "invalid-input",
    `the input of ${what} does not fit its schema: ${issues.join("; ")}`,
  );
}
