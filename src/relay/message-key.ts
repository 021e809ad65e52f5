import type { AnyDefinition } from "../definition.ts";
import { checkKey } from "../names.ts";
import { validate } from "../schema.ts";
import type { ClaimedJob } from "../store.ts";

/**
 * What keeps messages together in a broker: the concurrency key where the definition has one, else the job's id. Throws, or rejects, where
 * the input no longer fits its definition. A promise only where the schema is asynchronous.
 */
export function messageKey(definition: AnyDefinition, job: ClaimedJob): string | Promise<string> {
  const key = definition.concurrency?.key ?? null;
  if (key === null) return job.id;
  const what = `job ${JSON.stringify(definition.name)}`;
  // The value has been validated against this definition's schema, which is what its key functions take.
  const keyOf = (value: unknown): string => checkKey(key(value as never), `the concurrency key of ${what}`);
  const input: unknown = JSON.parse(job.input);
  if (definition.schema === null) return keyOf(input);
  const value = validate(definition.schema, input, what);
  return value instanceof Promise ? value.then(keyOf) : keyOf(value);
}
