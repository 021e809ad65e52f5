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
    if (authorize !== null) return this.#askTheApp(authorize, request, address);
    const sent = request.headers.get("authorization");
    const identity = this.#byToken(sent);
    // Others may share the address, behind a proxy for example: their guesses must not lock out a caller with a valid token.
    if (identity !== null) return identity;
    // A request without a token is not a guess.
    if (sent !== null) {
      this.#checkWait(address);
      if (address !== undefined) this.#failed.failed(address);
    }
    throw unauthorised("expected the header Authorization: Bearer with one of the tokens of this server");
  }

  /** The wait comes first: what `authorize` looks at may be a password, and checking one is expensive. */
  async #askTheApp(
    authorize: NonNullable<ApiSettings["authorize"]>,
    request: Request,
    address: string | undefined,
  ): Promise<Identity> {
    this.#checkWait(address);
    const identity = await authorize(request);
    if (identity === null) {
      if (address !== undefined) this.#failed.failed(address);
      throw unauthorised("the server does not know who you are");
    }
    if (address !== undefined) this.#failed.succeeded(address);
    return checkReturned(identity);
  }

  #checkWait(address: string | undefined): void {
    // An unknown address means everyone, who must not be locked out because of one.
    const waitMs = address === undefined ? 0 : this.#failed.waitMs(address);
    if (waitMs === 0) return;
    throw new ProblemError("too-many-attempts", "too many failed logins from this address; wait", {
      "Retry-After": String(Math.ceil(waitMs / 1_000)),
    });
  }

  /** All tokens are compared, so the time reveals neither which came close nor how long it is. */
  #byToken(sent: string | null): Identity | null {
    const [, token = ""] = /^Bearer +(\S+)$/i.exec(sent ?? "") ?? [];
    const digest = digestOf(token);
    let found: Identity | null = null;
    for (const known of this.#digests) if (timingSafeEqual(known.digest, digest)) found = known.identity;
    return found;
  }
}

function unauthorised(detail: string): ProblemError {
  return new ProblemError("unauthorised", detail, { "WWW-Authenticate": 'Bearer realm="escapement"' });
}

/** The server's own mistake; the caller learns nothing about it. */
function checkReturned(identity: Identity): Identity {
  try {
    return checkIdentity(identity, "what authorize returned");
  } catch (error) {
    throw new TypeError("authorize returned something other than an actor and a role", { cause: error });
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
    "this server has no credentials, so it answers only direct requests to localhost; give it tokens",
  );
}
