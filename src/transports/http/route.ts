import { isIP } from "node:net";
import type { Duration } from "../../duration.ts";
import { describe, EscapementError } from "../../errors.ts";
import type { Route, TransportContext } from "../../message/transport.ts";
import { checkDuration, checkInteger, checkKnown, kindOf } from "../../options.ts";
import { AddressGuard } from "./address-guard.ts";
import { openAgent } from "./client.ts";
import { readSecrets } from "./signature.ts";
import { HttpTransport } from "./transport.ts";

export interface HttpOptions {
  /** `https://…`; `http://…` is for machines that trust their network. */
  readonly url: string;
  /** `whsec_` and the base64 of 24 to 64 random bytes; several while one is being replaced. It signs each message. */
  readonly secret: string | readonly string[];
  /** Headers for every request, such as `authorization`. They are not sent on a redirect to another origin. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Addresses and ranges that may be called although they are not public: `["10.1.0.0/16", "::1"]`. @default none */
  readonly allow?: readonly string[];
  /** Concurrent requests, over all routes with these options. @default 16 */
  readonly concurrency?: number;
  /** A request without an answer after this long is ambiguous. @default "30s" */
  readonly requestTimeout?: Duration;
  /** How many redirects (307 and 308) are followed, never to another host. @default 3 */
  readonly maxRedirects?: number;
  /** @default "300s" */
  readonly dispatchTimeout?: Duration;
}

/**
 * Posts to an HTTP endpoint, signed in the form of Standard Webhooks. Addresses that are not public are refused unless allowed.
 *
 * @example
 * const payment = defineJob({ name: "payment", route: http({ url: "https://pay.example/jobs", secret: process.env.PAY_SECRET }) });
 */
export function http(options: HttpOptions): Route {
  checkKnown(options, known, "http");
  // Defaults are here and not behind `??`, so null is refused like any other invalid value.
  const { headers = {}, allow = [], concurrency = 16, maxRedirects = 3 } = options;
  const { requestTimeout = "30s", dispatchTimeout = "300s" } = options;
  const keys = readSecrets(options.secret, "http's secret");
  const resolved = {
    headers: checkHeaders(headers),
    allow: checkRanges(allow),
    concurrency: checkInteger(concurrency, 1, 1_000, "http's concurrency"),
    requestTimeoutMs: checkDuration(requestTimeout, "http's requestTimeout"),
    maxRedirects: checkInteger(maxRedirects, 0, 20, "http's maxRedirects"),
  };
  const destination = checkUrl(options.url);
  return {
    destination,
    dispatchTimeoutMs: checkDuration(dispatchTimeout, "http's dispatchTimeout"),
    transport: {
      kind: "http",
      // A host that hangs must not take the others' turns.
      address: JSON.stringify([
        new URL(destination).origin,
        resolved,
        keys.map((key) => key.export().toString("base64")),
      ]),
      // Not batched: each message is a request, and one that hangs must not delay the results of the others.
      open: async ({ clock }: TransportContext) => {
        const guard = new AddressGuard(resolved.allow);
        const agent = await openAgent(guard, resolved.concurrency);
        return new HttpTransport({ ...resolved, keys, clock, guard, agent });
      },
    },
  };
}

const known = [
  "url",
  "secret",
  "headers",
  "allow",
  "concurrency",
  "requestTimeout",
  "maxRedirects",
  "dispatchTimeout",
];

function checkUrl(value: unknown): string {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : null;
  if (
    url === null ||
    !["http:", "https:"].includes(url.protocol) ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw new EscapementError(
      "invalid-option",
      `expected http's url to be an http or https URL without a user and a password (a job's destination is shown; put credentials into headers), got ${url === null ? textOrKind(value) : "one with another scheme or with credentials"}`,
    );
  }
  return url.href;
}

/** A string that may hold a user and a password is not repeated. */
function textOrKind(value: unknown): string {
  if (typeof value !== "string") return kindOf(value);
  return value.includes("@") ? "another string" : describe(value);
}

const ours =
  /^(webhook-|escapement-|idempotency-key$|content-|host$|connection$|keep-alive$|upgrade$|expect$|transfer-encoding$)/;

function checkHeaders(headers: unknown): Record<string, string> {
  // An iterable, such as Headers or a Map, has no own names, and would be sent as nothing.
  if (typeof headers !== "object" || headers === null || Symbol.iterator in headers) {
    throw new EscapementError(
      "invalid-option",
      `expected http's headers to be an object such as { authorization: "…" }, got ${kindOf(headers)}`,
    );
  }
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || ours.test(lower)) {
      throw new EscapementError(
        "invalid-option",
        `expected http's headers to have names of headers that it does not set itself, got ${describe(name)}`,
      );
    }
    if (typeof value !== "string" || /[^\t\x20-\x7e]/.test(value)) {
      throw new EscapementError(
        "invalid-option",
        `expected http's header ${describe(name)} to be a string in printable ASCII, got ${typeof value === "string" ? "another string" : kindOf(value)}`,
      );
    }
    checked[lower] = value;
  }
  return checked;
}

function checkRanges(ranges: unknown): string[] {
  if (!Array.isArray(ranges)) throw notRanges(ranges);
  return ranges.map((range: unknown) => {
    if (typeof range !== "string") throw notRanges(range);
    const [address = "", bits = "0", ...rest] = range.split("/");
    const most = isIP(address) === 6 ? 128 : 32;
    if (isIP(address) === 0 || rest.length > 0 || !/^\d+$/.test(bits) || Number(bits) > most)
      throw notRanges(range);
    return range;
  });
}

function notRanges(value: unknown): EscapementError {
  return new EscapementError(
    "invalid-option",
    `expected http's allow to be a list of addresses or ranges such as ["10.1.0.0/16"], got ${describe(value)}`,
  );
}
