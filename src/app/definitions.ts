import type { AnyDefinition } from "../definition.ts";
import { EscapementError } from "../errors.ts";

/** Definitions by their names. */
export function indexDefinitions(definitions: readonly AnyDefinition[]): ReadonlyMap<string, AnyDefinition> {
  const index = new Map<string, AnyDefinition>();
  for (const definition of definitions) {
    if (index.has(definition.name)) {
      throw new EscapementError(
        "duplicate-definition",
        `two definitions have the name ${JSON.stringify(definition.name)}; names are how jobs find their handler`,
      );
    }
    index.set(definition.name, definition);
  }
  return index;
}
