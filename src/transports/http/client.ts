import type { Agent } from "undici";
import { EscapementError } from "../../errors.ts";
import type { AddressGuard } from "./address-guard.ts";

/** An agent that keeps up to `connections` to each host, and that connects only where the guard allows. The package is looked for only now. */
export async function openAgent(guard: AddressGuard, connections: number): Promise<Agent> {
  const { Agent } = await import("undici").catch((cause: unknown) => {
    throw new EscapementError(
      "transport-missing-client",
      "the HTTP transport needs the package undici; install it with `npm install undici`",
      { cause },
    );
  });
  return new Agent({
    connections,
    connect: { lookup: guard.lookup },
    // A connection that breaks must leave no doubt about whose request was lost with it.
    allowH2: false,
    pipelining: 1,
    // How long an answer may take is the posting's to say.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
