import type { Agent } from "undici";
import { cannotLoad } from "../../runtime/cannot-load.ts";
import type { AddressGuard } from "./address-guard.ts";

/** An agent that keeps up to `connections` to each host, and connects only if the guard allows. The package is loaded only now. */
export async function openAgent(guard: AddressGuard, connections: number): Promise<Agent> {
  const { Agent } = await import("undici").catch(
    cannotLoad({ code: "transport-missing-client", who: "the HTTP transport", packages: ["undici"] }),
  );
  return new Agent({
    connections,
    connect: { lookup: guard.lookup },
    // When a connection breaks, it must be clear whose request was lost with it.
    allowH2: false,
    pipelining: 1,
    // The request itself sets how long an answer may take.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
