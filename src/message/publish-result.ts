import { EscapementError } from "../errors.ts";
import type { PublishResult } from "./transport.ts";

export const acknowledged: PublishResult = { kind: "acknowledged" };

export interface Refusal {
  readonly cause?: unknown;
  /** @default false */
  readonly permanent?: boolean;
  readonly retryAfterMs?: number;
  /** @default false */
  readonly ofJob?: boolean;
}

/** It was certainly not taken. */
export function refused(message: string, refusal: Refusal = {}): PublishResult {
  const { cause, permanent = false, retryAfterMs, ofJob = false } = refusal;
  return {
    kind: "refused",
    error: new EscapementError("publish-refused", message, { cause }),
    permanent,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(ofJob ? { ofJob } : {}),
  };
}

/** It is unknown whether it was taken. */
export function ambiguous(message: string, cause?: unknown): PublishResult {
  return { kind: "ambiguous", error: new EscapementError("publish-ambiguous", message, { cause }) };
}

/** A message behind one of the same key that was not acknowledged stays unsent: it must not overtake. */
export const heldBack = refused(
  "it was not sent, because a message before it that it must not overtake was not acknowledged",
);

/** What an error says, in one line. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const text = message === "" ? error.name : message.replace(/\.$/, "");
  return cause instanceof Error && cause.message !== "" ? `${text}: ${textOf(cause)}` : text;
}
