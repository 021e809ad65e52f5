import { systemRuntime } from "../runtime/runtime.ts";
import type { EscapementOptions } from "../settings.ts";
import { Escapement } from "./escapement.ts";

/**
 * An app: enqueues jobs, answers questions about them and, once started, runs them.
 *
 * @example
 * const app = createEscapement({ store: "sqlite:app.db", jobs: [invoice] });
 * await app.enqueue(invoice, { customer: "42" });
 * await app.start();
 */
export function createEscapement(options: EscapementOptions = {}): Escapement {
  return new Escapement(options, systemRuntime);
}
