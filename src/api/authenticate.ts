import { createHash, timingSafeEqual } from "node:crypto";
import { FailedLogins } from "./failed-logins.ts";
import { type ApiSettings, checkIdentity, type Identity, type RequestContext } from "./options.ts";
import { ProblemError } from "./problem.ts";

/** Finds out who asks, or refuses. */
export class Authenticator {
  readonly #settings: ApiSettings;
  readonly #digests: readonly { readonly digest: Buffer; readonly identity: Identity }[];
  readonly #failed = new FailedLogins();

  constructor(settings: ApiSettings) {
    this.#settings = settings;
    this.#digests = settings.tokens.map(({ token, actor, role }) => ({
      digest: digestOf(token),
      identity: { actor, role },
    }));
  }

  async identify(request: Request, { address }: RequestContext): Promise<Identity> {
    const { authorize, insecure } = this.#settings;
    if (insecure) {
      checkLocal(request);
      return { actor: "local", role: "admin" };
    }
    // An address that nobody knows stands for everybody, who must not be locked out for one.
    const waitMs = address === undefined ? 0 : this.#failed.waitMs(address);
    if (waitMs > 0) {
      throw new ProblemError("too-many-attempts", "too many failed logins from this address; wait", {
        "Retry-After": String(Math.ceil(waitMs / 1_000)),
      });
    }
    const sent = request.headers.get("authorization");
    const identity = authorize === null ? this.#byToken(sent) : await authorize(request);
    if (identity !== null) {
      if (address !== undefined) this.#failed.succeeded(address);
      return authorize === null ? identity : checkReturned(identity);
    }
    // A request without a token is not a guess.
    if (address !== undefined && (sent !== null || authorize !== null)) this.#failed.failed(address);
    throw new ProblemError(
      "unauthorised",
      authorize === null
        ? "expected the header Authorization: Bearer with one of the tokens of this server"
        : "the server does not know who you are",
      { "WWW-Authenticate": 'Bearer realm="escapement"' },
    );
  }

  /** All tokens are compared, so the time tells nothing of which came close, or how long it is. */
  #byToken(sent: string | null): Identity | null {
    const [, token = ""] = /^Bearer +(\S+)$/i.exec(sent ?? "") ?? [];
    const digest = digestOf(token);
    let found: Identity | null = null;
    for (const known of this.#digests) if (timingSafeEqual(known.digest, digest)) found = known.identity;
    return found;
  }
}

/** The server's own mistake; the caller learns nothing about it. */
function checkReturned(identity: Identity): Identity {
  try {
    return checkIdentity(identity, "what authorize returned");
  } catch (error) {
    throw new TypeError("authorize returned something else than an actor and a role", { cause: error });
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

const forwarding = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"] as const;

/**
 * Without credentials only this machine is answered. A page of another site can make a browser ask by a name that leads here, and a proxy
 * asks for others.
 */
function checkLocal(request: Request): void {
  const { hostname } = new URL(request.url);
  const isLocal = hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
  if (isLocal && forwarding.every((name) => !request.headers.has(name))) return;
  throw new ProblemError(
    "forbidden",
    "this server has no credentials, so it answers only what is asked directly for localhost; give it tokens",
  );
}
