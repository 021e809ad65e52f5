import { EscapementError } from "../../errors.ts";
import type { TransportFactory } from "../../message/transport.ts";
import { checkHosts, checkLogin, checkTexts } from "../../options.ts";

/** Where the servers are and how to log in. */
export interface NatsAddress {
  /** `host:port` of each. */
  readonly servers: readonly string[];
  readonly user: string | null;
  readonly pass: string | null;
  readonly token: string | null;
  readonly tls: boolean;
}

const form = /^(nats|tls):\/\/(?:([^@/]*)@)?([^/?#]+)\/?$/;

const option = "nats' servers";

/** Reads `nats://user:password@a:4222,b:4222`, `nats://token@…` or `tls://…`. A message never repeats it, since it may hold a password. */
export function parseNats(given: string | readonly string[] | undefined): NatsAddress {
  const text = given === undefined ? process.env["ESCAPEMENT_NATS"] : checkTexts(given, option).join(",");
  if (text === undefined || text === "") {
    throw new EscapementError(
      "invalid-option",
      "nats does not know where its servers are; give it servers, or set ESCAPEMENT_NATS",
    );
  }
  const match = form.exec(/^\w+:\/\//.test(text) ? text : `nats://${text}`);
  const [, scheme, login = "", hosts = ""] = match ?? [];
  if (match === null) {
    throw new EscapementError(
      "invalid-option",
      `expected ${option} to be nats://user:password@host:port,… or host:port,…, got another string`,
    );
  }
  const [first, second] = checkLogin(login, option);
  return {
    servers: checkHosts(hosts, 4_222, option),
    user: second === undefined ? null : first,
    pass: second ?? null,
    token: second === undefined && first !== "" ? first : null,
    tls: scheme === "tls",
  };
}

/** Given values are checked at once; the environment is read when it is needed. */
export function checkServers(options: { readonly servers?: string | readonly string[] }): void {
  if (options.servers !== undefined) parseNats(options.servers);
}

/**
 * Whether a route's address leads to the servers given here: both name one of them. If the environment does not say yet where
 * one of them leads, it will say the same for both.
 */
export function sharesServer(
  transport: TransportFactory,
  given: string | readonly string[] | undefined,
): boolean {
  try {
    const { servers }: NatsAddress = JSON.parse(transport.address);
    return parseNats(given).servers.some((server) => servers.includes(server));
  } catch {
    return true;
  }
}
