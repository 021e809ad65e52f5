import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import { EscapementError } from "../../errors.ts";
import { kindOf } from "../../options.ts";

/** What is signed: the form of Standard Webhooks. */
export interface Signed {
  /** `webhook-id` */
  readonly id: string;
  /** `webhook-timestamp`: seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The keys of one or more secrets: `whsec_` and the base64 of 24 to 64 bytes. A message never repeats one. Prepared once: from bytes,
 * each signature would take several times as long.
 */
export function readSecrets(given: string | readonly string[], option: string): KeyObject[] {
  const secrets = [given].flat();
  if (secrets.length === 0 || secrets.length > 8) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be 1 to 8 secrets, got ${secrets.length}`,
    );
  }
  return secrets.map((secret) => {
    const key = keyOf(secret);
    if (key.length < 24 || key.length > 64) {
      throw new EscapementError(
        "invalid-option",
        `expected ${option} to be whsec_ and the base64 of 24 to 64 random bytes (echo "whsec_$(openssl rand -base64 32)"), got ${wrongSecret(secret)}`,
      );
    }
    return createSecretKey(key);
  });
}

/** Empty if it has another form. */
function keyOf(secret: unknown): Buffer {
  const form = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
  return Buffer.from((typeof secret === "string" ? form.exec(secret)?.[1] : undefined) ?? "", "base64");
}

/** What is wrong with it, without revealing any of it. */
function wrongSecret(secret: unknown): string {
  if (secret === undefined || secret === "")
    return `${kindOf(secret)}; is the variable set that it is read from?`;
  if (typeof secret !== "string") return kindOf(secret);
  if (!secret.startsWith("whsec_")) return "a string that does not begin with whsec_";
  const { length } = keyOf(secret);
  return length === 0 ? "a string whose rest is not base64" : `${length} bytes`;
}

/** The value of `webhook-signature`: one signature for each key, so a secret can be replaced without a gap. */
export function signatureOf({ id, timestamp, body }: Signed, keys: readonly KeyObject[]): string {
  return signaturesOver(`${id}.${timestamp}.${body}`, keys);
}

export function signaturesOver(content: string, keys: readonly KeyObject[]): string {
  return keys.map((key) => `v1,${createHmac("sha256", key).update(content).digest("base64")}`).join(" ");
}

/** Whether one of the signatures was made with one of the keys. All are checked, so the time taken reveals nothing. */
export function isSigned(content: string, signatures: string, keys: readonly KeyObject[]): boolean {
  const expected = signaturesOver(content, keys)
    .split(" ")
    .map((one) => Buffer.from(one));
  let found = false;
  for (const one of signatures.split(" ").slice(0, 32)) {
    const given = Buffer.from(one);
    for (const own of expected) {
      if (given.length === own.length && timingSafeEqual(given, own)) found = true;
    }
  }
  return found;
}

/** How far a clock may be off, and how long a message may be in transit. */
const toleranceMs = 5 * 60_000;

/**
 * The three headers of Standard Webhooks for a body.
 *
 * @example
 * const headers = signWebhook({ id, body, secret: process.env.WEBHOOK_SECRET });
 */
export function signWebhook(what: {
  readonly id: string;
  readonly body: string;
  readonly secret: string | readonly string[];
  /** @default now */
  readonly at?: Date;
}): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const timestamp = Math.floor((what.at ?? new Date()).getTime() / 1_000);
  const signed = { id: what.id, timestamp, body: what.body };
  return {
    "webhook-id": what.id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatureOf(signed, readSecrets(what.secret, "secret")),
  };
}

/**
 * Checks the three headers of Standard Webhooks against a body, exactly as received.
 *
 * @throws EscapementError `invalid-signature`
 */
export function verifyWebhook(what: {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  readonly secret: string | readonly string[];
  /** @default now */
  readonly at?: Date;
}): void {
  checkWebhook(
    what.headers,
    what.body,
    readSecrets(what.secret, "secret"),
    (what.at ?? new Date()).getTime(),
  );
}

export function checkWebhook(
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  keys: readonly KeyObject[],
  nowMs: number,
): void {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  const signatures = headers["webhook-signature"];
  if (
    id === undefined ||
    timestamp === undefined ||
    signatures === undefined ||
    !/^\d{1,12}$/.test(timestamp)
  ) {
    throw new EscapementError(
      "invalid-signature",
      "expected the headers webhook-id, webhook-timestamp and webhook-signature, and at least one is missing or malformed",
    );
  }
  if (Math.abs(nowMs - Number(timestamp) * 1_000) > toleranceMs) {
    throw new EscapementError(
      "invalid-signature",
      `the message was signed more than ${toleranceMs / 60_000} minutes ago, or in the future; check the clocks of both sides`,
    );
  }
  if (!isSigned(`${id}.${Number(timestamp)}.${body}`, signatures, keys)) {
    throw new EscapementError("invalid-signature", "no signature of the message matches a known secret");
  }
}
