import { type Duration, parseDuration } from "../duration.ts";
import { describe, EscapementError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { checkName } from "../names.ts";
import { checkInteger, checkKnown, checkOneOf } from "../options.ts";
import { verifyReportFile } from "../verify-report.ts";
import type { Redaction } from "./redact.ts";
import { type Role, roles } from "./roles.ts";

/** The caller and their role. */
export interface Identity {
  /** Kept in the audit log and in trails. */
  readonly actor: string;
  readonly role: Role;
}

/** A secret that a caller sends as `Authorization: Bearer …`. One actor may have several, so one can be replaced by the next. */
export interface ApiToken extends Identity {
  /** At least 24 characters; make it with `openssl rand -hex 32`. */
  readonly token: string;
}

/** How the API is served. It needs `tokens`, `authorize`, or `insecure: true`. */
export interface ApiOptions {
  /** Where it is mounted, when requests come with that prefix: `"/escapement"`. @default "" */
  readonly basePath?: string;
  readonly tokens?: readonly ApiToken[];
  /** Decides by the request who asks; null refuses it. */
  readonly authorize?: (request: Request) => Identity | null | Promise<Identity | null>;
  /** Treats every request to a loopback host name, not through a proxy, as admin. Serve it on loopback only. @default false */
  readonly insecure?: boolean;
  /** Origins of other pages that may change something, such as `"https://ops.example.com"`. The API's own is always one. @default [] */
  readonly origins?: readonly string[];
  /** What is masked in every answer, event and error. */
  readonly redact?: readonly Redaction[];
  /** The longest body of a request. @default the app's `maxInputBytes` and 64 KiB */
  readonly maxBodyBytes?: number;
  /** How many event streams may be open at once. @default 100 */
  readonly maxStreams?: number;
  /**
   * How long an answer may take. Calls to a store that hangs take about a minute; callers and proxies time out first, without an error.
   * The operation may still complete. @default "30s"
   */
  readonly answerTimeout?: Duration;
  /** The file in which `escapement verify` left its last report. @default "escapement-verify.json" in the working directory */
  readonly verifyReport?: string;
  /** A sentence that the dashboard shows on every screen: what this installation is, or what is happening. @default none */
  readonly notice?: string;
}

/** What the server that calls the handler knows, and a request cannot claim. */
export interface RequestContext {
  /** The peer's address: failed logins are slowed down by it. */
  readonly address?: string;
}

export interface ApiSettings {
  readonly basePath: string;
  readonly tokens: readonly ApiToken[];
  readonly authorize: NonNullable<ApiOptions["authorize"]> | null;
  readonly insecure: boolean;
  readonly origins: readonly string[];
  readonly redact: readonly Redaction[];
  readonly maxBodyBytes: number;
  readonly maxStreams: number;
  readonly answerTimeoutMs: number;
  readonly verifyReport: string;
  readonly notice: string | null;
  readonly log: Logger;
}

const shortestToken = 24;
const known = [
  "basePath",
  "tokens",
  "authorize",
  "insecure",
  "origins",
  "redact",
  "maxBodyBytes",
  "maxStreams",
  "answerTimeout",
  "verifyReport",
  "notice",
] as const satisfies (keyof ApiOptions)[];

export function resolveOptions(
  options: ApiOptions,
  app: { readonly maxInputBytes: number; readonly log: Logger },
): ApiSettings {
  checkKnown(options, known, "createApi");
  const { basePath = "", tokens = [], authorize = null, insecure = false } = options;
  if (!/^(\/[\w.~-]+)*$/.test(basePath)) {
    throw new EscapementError(
      "invalid-option",
      `expected basePath to be empty or a path such as "/escapement", got ${describe(basePath)}`,
    );
  }
  const ways = [tokens.length > 0, authorize !== null, insecure].filter(Boolean).length;
  if (ways !== 1) {
    throw new EscapementError(
      "invalid-option",
      `expected one of tokens, authorize and insecure: true, got ${ways === 0 ? "none: without one, the API is closed" : `${ways} of them`}`,
    );
  }
  return {
    basePath,
    tokens: tokens.map(checkToken),
    authorize,
    insecure,
    origins: (options.origins ?? []).map(checkOrigin),
    redact: options.redact ?? [],
    maxBodyBytes: checkInteger(
      options.maxBodyBytes ?? app.maxInputBytes + 65_536,
      1_024,
      1_073_741_824,
      "maxBodyBytes",
    ),
    maxStreams: checkInteger(options.maxStreams ?? 100, 0, 100_000, "maxStreams"),
    answerTimeoutMs: parseDuration(options.answerTimeout ?? "30s", "answerTimeout"),
    verifyReport: checkPath(options.verifyReport ?? verifyReportFile),
    notice: checkNotice(options.notice),
    log: app.log,
  };
}

export function checkIdentity(identity: Identity, what: string): Identity {
  const { actor, role } = identity;
  return {
    actor: checkName(actor, `actor of ${what}`),
    role: checkOneOf(role, roles, `role of ${what}`),
  };
}

function checkToken(given: ApiToken): ApiToken {
  checkKnown(given, ["token", "actor", "role"], "a token");
  const identity = checkIdentity(given, "a token");
  const { token } = given;
  // The token itself is never repeated.
  if (typeof token !== "string" || token.length < shortestToken || !/^[\x21-\x7e]+$/.test(token)) {
    throw new EscapementError(
      "invalid-option",
      `expected the token of ${identity.actor} to have at least ${shortestToken} visible ASCII characters; make one with "openssl rand -hex 32"`,
    );
  }
  return { ...identity, token };
}

function checkPath(given: unknown): string {
  if (typeof given === "string" && given !== "") return given;
  throw new EscapementError(
    "invalid-option",
    `expected verifyReport to be the path of a file, got ${describe(given)}`,
  );
}

const longestNotice = 500;

function checkNotice(given: unknown): string | null {
  if (given === undefined) return null;
  if (typeof given === "string" && given !== "" && given.length <= longestNotice) return given;
  throw new EscapementError(
    "invalid-option",
    `expected notice to be a string of at most ${longestNotice} characters, got ${describe(given)}`,
  );
}

function checkOrigin(given: string): string {
  const url = URL.parse(given);
  if (url !== null && /^https?:$/.test(url.protocol) && url.origin === given.replace(/\/$/, ""))
    return url.origin;
  throw new EscapementError(
    "invalid-option",
    `expected each of origins to be an origin such as "https://ops.example.com", got ${describe(given)}`,
  );
}
