import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Api } from "./create-api.ts";

/** What `createServer` of node:http, Express and Fastify call. */
export type NodeListener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/**
 * An API as a listener of node:http. It passes on the peer's address, which no request can claim.
 *
 * @example
 * createServer(toNodeListener(createApi(app, options))).listen(3000, "127.0.0.1");
 */
export function toNodeListener(api: Api): NodeListener {
  return getRequestListener(
    (request, { incoming }) => api(request, { address: incoming.socket.remoteAddress ?? "" }),
    // Frameworks around it have their own idea of Request and Response.
    { overrideGlobalObjects: false },
  ) as NodeListener;
}
