import { hash } from "node:crypto";

/** What an idempotency key is made of. An occurrence is known by its schedule and time, any other job by its id. */
export interface IdempotencySource {
  readonly namespace: string;
  readonly id: string;
  readonly schedule: string | null;
  readonly fireAt: Date;
}

/**
 * The key under which an effect may happen once, the same for every attempt of a job and in every language:
 * SHA-256 in lower-case hex over lines, documented with test vectors in docs/GUARANTEES.md.
 */
export function idempotencyKey(source: IdempotencySource): string {
  const lines =
    source.schedule === null
      ? [source.namespace, "job", source.id]
      : [source.namespace, "schedule", source.schedule, source.fireAt.toISOString()];
  return hash("sha256", lines.join("\n"), "hex");
}
