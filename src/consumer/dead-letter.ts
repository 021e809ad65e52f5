import { hash } from "node:crypto";
import { recordError } from "../errors.ts";
import { bodyEncodingHeader } from "../message/decoding.ts";
import { encodeHeader, type Message } from "../message/message.ts";
import type { DeadMessage } from "./options.ts";

/** `bare`: without optional parts, for a place where the whole of it does not fit. */
export type LetterForm = "whole" | "bare";

/** Our own headers that a dead letter keeps as they are. Those needed to send the job again come first. */
const needed = [
  "idempotency-key",
  "escapement-namespace",
  "escapement-id",
  "escapement-name",
  "escapement-fire-at",
  "escapement-delivery",
  "escapement-redrives",
  bodyEncodingHeader,
];
const ours = new Set([
  ...needed,
  "content-type",
  "escapement-queue",
  "escapement-attempt",
  "escapement-token",
  "escapement-schedule",
  "escapement-published-at",
  "traceparent",
  "tracestate",
]);

/** Set by the publisher: they say where a copy is, and nothing about the job. */
const dropped = new Set(["escapement-key", "escapement-dedupe-id", "escapement-error", "escapement-tries"]);

/**
 * Prefix of every header that is not ours: `host`, `authorization`, `nats-rollup` and the like would mean something to the broker or the
 * server that receives the letter, and the original sender must not decide that.
 */
const foreignPrefix = "escapement-original-";

const longestError = 1_000;
const longestBareError = 30;
const longestBareValue = 512;
const mostForeignHeaders = 32;
const mostForeignLength = 4_096;

/** A dead message in the form in which it is sent to where dead messages are kept. */
export function deadLetterOf(dead: DeadMessage, destination: string, form: LetterForm): Message {
  const { message, error, tries, position } = dead;
  const text = recordError(error).message;
  const headers = form === "whole" ? wholeHeaders(message.headers) : bareHeaders(message.headers);
  return {
    destination,
    key: message.key,
    // The same message gets the same id, however often it is delivered. A key chosen by the sender might be that of another dead message.
    dedupeId: `dead:${hash("sha256", position, "base64url")}`,
    headers: {
      ...headers,
      "escapement-error": form === "whole" ? encodeHeader(text.slice(0, longestError)) : shortened(text),
      "escapement-tries": String(tries),
    },
    body: message.body,
  };
}

type Headers = Readonly<Record<string, string>>;

function wholeHeaders(headers: Headers): Record<string, string> {
  const all: Record<string, string> = {};
  let [foreign, length, leftOut] = [0, 0, 0];
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    const carried = carriable(value);
    if (ours.has(name)) all[name] = carried;
    else if (!dropped.has(name)) {
      length += name.length + carried.length;
      foreign += 1;
      const fits = foreign <= mostForeignHeaders && length <= mostForeignLength;
      // A message that dies again keeps the names that it got the first time.
      if (fits && isName(name)) all[name.startsWith(foreignPrefix) ? name : foreignPrefix + name] = carried;
      else leftOut += 1;
    }
  }
  return leftOut === 0 ? all : { ...all, "escapement-headers-left-out": String(leftOut) };
}

function bareHeaders(headers: Headers): Record<string, string> {
  const kept = needed.flatMap((name) => {
    const value = carriable(headers[name] ?? "");
    return value === "" || value.length > longestBareValue ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

function isName(name: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name);
}

/** Values that any broker accepts: foreign ones may hold whatever their own broker let through. */
function carriable(value: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$|^$/.test(value) ? value : encodeHeader(value);
}

/** Encoded, it may be several times as long, and must not be cut in the middle of a character. */
function shortened(text: string): string {
  let short = text.slice(0, longestBareError);
  while (encodeHeader(short).length > longestBareError) short = short.slice(0, -1);
  return encodeHeader(short);
}
