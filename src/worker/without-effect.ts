import { Snooze } from "../handler.ts";
import type { Logger } from "../log.ts";
import type { Held } from "./held.ts";
import type { Ending } from "./outcome.ts";

/**
 * An effectively-once handler that never called tx protects nothing from happening twice; that is logged once for each
 * definition.
 */
export class WithoutEffect {
  readonly #log: Logger;
  readonly #warned = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  ended({ job, definition }: Held, ending: Ending): void {
    if (definition.delivery !== "effectively-once" || ending.kind !== "returned") return;
    if (ending.value instanceof Snooze || this.#warned.has(definition.name)) return;
    this.#warned.add(definition.name);
    this.#log.warn(
      { job: job.id, name: definition.name },
      "an effectively-once handler ended without calling tx: what it did may happen again after a crash",
    );
  }
}
