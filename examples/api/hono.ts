// The API in a Hono app.
import { Hono } from "hono";
import { api } from "./app.ts";

// #region serve
export const server = new Hono();
server.all("/escapement/*", (context) => api(context.req.raw));
// #endregion
