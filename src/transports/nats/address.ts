import { describe, EscapementError } from "../../errors.ts";

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

/** Reads `nats://user:password@a:4222,b:4222`, `nats://token@…` or `tls://…`. A message never repeats it, it may hold a password. */
export function parseNats(given: string | readonly string[] | undefined): NatsAddress {
  const text = given === undefined ? process.env["ESCAPEMENT_NATS"] : [given].flat().join(",");
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
      `expected nats' servers to be nats://user:password@host:port,… or host:port,…, got ${typeof given === "string" || given === undefined ? "another text" : describe(given)}`,
    );
  }
  const [first = "", second] = login.split(/:(.*)/s).map(decodeURIComponent);
  return {
    servers: hosts.split(","),
    user: second === undefined ? null : first,
    pass: second ?? null,
    token: second === undefined && first !== "" ? first : null,
    tls: scheme === "tls",
  };
}
