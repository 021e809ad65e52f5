// The dashboard in a Hono app.
import { Hono } from "hono";
import { dashboard } from "./app.ts";

// #region serve
export const server = new Hono();
server.all("/ops/escapement", (context) => dashboard(context.req.raw));
server.all("/ops/escapement/*", (context) => dashboard(context.req.raw));
// #endregion
