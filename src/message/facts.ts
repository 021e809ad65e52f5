import { EscapementError } from "../errors.ts";
import { deliveries } from "../job.ts";
import { isKey } from "../names.ts";
import { readTrace } from "../telemetry/trace.ts";
import type { MessageFacts } from "./message.ts";

/**
 * Reads a job's facts from a message's headers: the reverse of `encodeMessage`. What another language may leave out has a default.
 *
 * @throws EscapementError `invalid-message`
 */
export function readFacts(headers: Readonly<Record<string, string | undefined>>): MessageFacts {
  const text = (name: string, otherwise?: string): string => {
    const value = headers[name];
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (value === undefined || value === "") throw unfit(name, "to be present", value);
    return decode(name, value);
  };
  const count = (name: string, otherwise: number): number => {
    const value = headers[name] ?? String(otherwise);
    if (!/^\d{1,15}$/.test(value)) throw unfit(name, "to be a whole number", value);
    return Number(value);
  };
  const fireAt = new Date(text("escapement-fire-at"));
  if (Number.isNaN(fireAt.getTime()))
    throw unfit("escapement-fire-at", "to be a time", headers["escapement-fire-at"]);
  const delivery = deliveries.find((one) => one === text("escapement-delivery", "at-least-once"));
  if (delivery === undefined)
    throw unfit(
      "escapement-delivery",
      `to be one of ${deliveries.join(", ")}`,
      headers["escapement-delivery"],
    );
  const idempotencyKey = text("idempotency-key");
  if (!isKey(idempotencyKey))
    throw unfit("idempotency-key", "to be a key of at most 512 characters", idempotencyKey);
  const trace = readTrace(headers["traceparent"], headers["tracestate"]);
  return {
    namespace: text("escapement-namespace"),
    id: text("escapement-id"),
    name: text("escapement-name"),
    queue: text("escapement-queue", "default"),
    delivery,
    fireAt,
    attempt: count("escapement-attempt", 1),
    token: count("escapement-token", 1),
    redrives: count("escapement-redrives", 0),
    schedule: headers["escapement-schedule"] === undefined ? null : text("escapement-schedule"),
    idempotencyKey,
    publishedAt: readInstant(headers["escapement-published-at"]),
    ...(trace === null ? {} : { trace }),
  };
}

/** A figure that cannot be read is no reason to refuse a message. */
function readInstant(value: string | undefined): Date | null {
  const instant = new Date(value ?? Number.NaN);
  return Number.isNaN(instant.getTime()) ? null : instant;
}

function decode(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw unfit(name, "to be percent-encoded", value);
  }
}

function unfit(name: string, what: string, value: string | undefined): EscapementError {
  const got = value === undefined ? "nothing" : JSON.stringify(value.slice(0, 100));
  return new EscapementError("invalid-message", `expected the header ${name} ${what}, got ${got}`);
}
