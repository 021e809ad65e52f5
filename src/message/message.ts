import { idempotencyKey } from "../idempotency.ts";
import type { Delivery } from "../job.ts";
import type { ClaimedJob } from "../store/claims.ts";
import type { TraceContext } from "../telemetry/trace.ts";

/** A job on its way through a broker. The form is documented for other languages in docs/WIRE.md. */
export interface Message {
  /** The topic, subject, stream or URL. */
  readonly destination: string;
  /** What must stay in order stays together: the concurrency key, or else the job's id. */
  readonly key: string;
  /** For a broker's own duplicate window: a redrive has another one, a second attempt at the same publish the same. */
  readonly dedupeId: string;
  /** Names in lower case, values in printable ASCII (see {@link encodeHeader}). */
  readonly headers: Readonly<Record<string, string>>;
  /** The job's input, as JSON. */
  readonly body: string;
}

/** What a consumer learns of the job behind a message. */
export interface MessageFacts {
  readonly namespace: string;
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly delivery: Delivery;
  readonly fireAt: Date;
  readonly attempt: number;
  readonly token: number;
  readonly redrives: number;
  readonly schedule: string | null;
  readonly idempotencyKey: string;
  /** When it was handed to the broker, by the store's clock; null if the sender does not say. Only figures rest on it. */
  readonly publishedAt: Date | null;
  /** Its trace context. Left out if the sender does not say. */
  readonly trace?: TraceContext;
}

/** What a message has beside its job. */
export interface Addressing {
  readonly destination: string;
  readonly key: string;
  readonly publishedAt: Date | null;
  readonly trace?: TraceContext | null;
}

export function encodeMessage(namespace: string, job: ClaimedJob, to: Addressing): Message {
  const key = idempotencyKey({ namespace, id: job.id, schedule: job.schedule, fireAt: job.fireAt });
  return {
    destination: to.destination,
    key: to.key,
    dedupeId: `${key}:${job.redrives}`,
    headers: {
      "content-type": "application/json",
      "idempotency-key": key,
      "escapement-namespace": encodeHeader(namespace),
      "escapement-id": encodeHeader(job.id),
      "escapement-name": encodeHeader(job.name),
      "escapement-queue": encodeHeader(job.queue),
      "escapement-delivery": job.delivery,
      "escapement-fire-at": job.fireAt.toISOString(),
      "escapement-attempt": String(job.attempt),
      "escapement-token": String(job.token),
      "escapement-redrives": String(job.redrives),
      ...(job.schedule === null ? {} : { "escapement-schedule": encodeHeader(job.schedule) }),
      ...(to.publishedAt === null ? {} : { "escapement-published-at": to.publishedAt.toISOString() }),
      ...to.trace,
    },
    body: job.input,
  };
}

/**
 * Percent-encodes what a header of HTTP or NATS may not carry, and the percent sign itself; `decodeURIComponent` undoes it. Halves of
 * surrogate pairs are replaced.
 */
export function encodeHeader(value: string): string {
  return value.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, (char) => encodeURIComponent(char));
}
