import { hash, type KeyObject } from "node:crypto";
import { EscapementError } from "../../errors.ts";
import { isSigned, readSecrets, type Signed, signaturesOver, signWebhook } from "./signature.ts";

/**
 * Standard Webhooks sign the id, the time and the body. What a receiver does with them also depends on headers: which handler runs, and under
 * which key. This signature covers those, so a captured request is valid only as that exact request.
 */
export const factsSignatureHeader = "escapement-signature";

type Headers = Readonly<Record<string, string | undefined>>;

/** Whether a header is signed: all of ours are, so none can be changed, added or removed. */
function isFact(name: string): boolean {
  if (name === "idempotency-key") return true;
  return name.startsWith("escapement-") && name !== factsSignatureHeader;
}

/** The first word distinguishes it from the input of `webhook-signature`, which begins with an id. */
function contentOf({ id, timestamp, body }: Signed, headers: Headers): string {
  const lines = Object.entries(headers)
    .filter(([name, value]) => value !== undefined && isFact(name))
    .map(([name, value]) => `${name}:${value}\n`)
    .sort();
  return `escapement.${id}.${timestamp}.${hash("sha256", lines.join(""))}.${hash("sha256", body)}`;
}

/** The value of `escapement-signature`. @param headers names in lower case. */
export function factsSignatureOf(signed: Signed, headers: Headers, keys: readonly KeyObject[]): string {
  return signaturesOver(contentOf(signed, headers), keys);
}

/**
 * Checks that the headers are those that were signed. The three of Standard Webhooks have already been checked.
 *
 * @throws EscapementError `invalid-signature`
 */
export function checkFacts(headers: Headers, body: string, keys: readonly KeyObject[]): void {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "" } = headers;
  const signatures = headers[factsSignatureHeader];
  if (signatures === undefined) {
    throw new EscapementError(
      "invalid-signature",
      `expected the header ${factsSignatureHeader}, which covers the other headers: see docs/WIRE.md`,
    );
  }
  if (isSigned(contentOf({ id, timestamp: Number(timestamp), body }, headers), signatures, keys)) return;
  throw new EscapementError(
    "invalid-signature",
    `the headers idempotency-key and escapement-* are not those that ${factsSignatureHeader} covers`,
  );
}

/**
 * All headers of a message for `httpEndpoint`, signed: those given, with the three of Standard Webhooks and `escapement-signature`.
 *
 * @example
 * await fetch(url, { method: "POST", body, headers: signMessage({ headers, body, secret }) });
 */
export function signMessage(what: {
  /** As in docs/WIRE.md, with names in lower case; `idempotency-key` is required. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly secret: string | readonly string[];
  /** @default now */
  readonly at?: Date;
}): Record<string, string> {
  const { headers, body, secret, at = new Date() } = what;
  const id = headers["idempotency-key"];
  if (id === undefined || id === "") {
    throw new EscapementError(
      "invalid-option",
      "expected the headers of signMessage to have idempotency-key",
    );
  }
  const webhook = signWebhook({ id, body, secret, at });
  const signed = { id, timestamp: Number(webhook["webhook-timestamp"]), body };
  const keys = readSecrets(secret, "secret");
  return { ...headers, ...webhook, [factsSignatureHeader]: factsSignatureOf(signed, headers, keys) };
}
