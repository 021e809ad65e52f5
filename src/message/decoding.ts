import { isUtf8 } from "node:buffer";
import { EscapementError } from "../errors.ts";
import type { Delivered } from "./source.ts";

/** A message as a broker's client holds it. Whatever throws on being read does so here, and not in the loop that reads messages. */
export interface Encoded {
  key(): string;
  headers(): Record<string, string>;
  body(): Uint8Array;
}

/** Says that the body of a dead message is the base64 of what came: it was not UTF-8. */
export const bodyEncodingHeader = "escapement-body-encoding";

const none = new Uint8Array(0);

/**
 * Decodes what came from outside, and never throws: a message that cannot be decoded is its own end, with the reason, and what could be read
 * of it is kept. Anything else would stop every message behind it for good.
 */
export function decodeMessage(encoded: Encoded): Pick<Delivered, "message" | "unreadable"> {
  const errors: unknown[] = [];
  const attempt = <T>(read: () => T, otherwise: T): T => {
    try {
      return read();
    } catch (error) {
      errors.push(error);
      return otherwise;
    }
  };
  const headers = attempt(() => encoded.headers(), {});
  const key = attempt(() => encoded.key(), "");
  const bytes = attempt(() => bounded(encoded.body()), none);
  if (errors.length === 0 && isUtf8(bytes)) return { message: { key, headers, body: textOf(bytes) } };
  const [cause] = errors;
  const what = cause === undefined ? "the body is not UTF-8" : String(cause);
  const unreadable = new EscapementError("invalid-message", `the message cannot be decoded: ${what}`, {
    cause,
  });
  if (isUtf8(bytes)) return { message: { key, headers, body: textOf(bytes) }, unreadable };
  const body = Buffer.from(bytes).toString("base64");
  return { message: { key, headers: { ...headers, [bodyEncodingHeader]: "base64" }, body }, unreadable };
}

/**
 * What a consumer holds as a string, and as base64 where it is dead. Compressed, a small message becomes far larger than any string may be, and
 * making one of it would throw in the loop that reads.
 */
const maxBodyBytes = 128 * 1_048_576;

function bounded(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength <= maxBodyBytes) return bytes;
  throw new RangeError(`expected a body of at most ${maxBodyBytes} bytes, got ${bytes.byteLength}`);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
